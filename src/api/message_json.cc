#include "api/message_json.h"

#include "base/json.h"

namespace coppice::api {

Json message_json(const chat::Message& message) {
  Json out = {{"role", "assistant"}};
  const bool only_calls = message.content.empty() && !message.tool_calls.empty();
  out["content"] = only_calls ? Json(nullptr) : Json(message.content);
  if (!message.reasoning.empty()) out["reasoning_content"] = message.reasoning;
  if (!message.tool_calls.empty()) {
    Json& calls = out["tool_calls"] = Json::array();
    for (const auto& call : message.tool_calls) {
      calls.push_back(
          {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
  }
  return out;
}

}  // namespace coppice::api
