#include "api/anthropic_request.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "api/anthropic_messages.h"
#include "api/cache_marks.h"
#include "api/fields.h"
#include "base/json.h"
#include "base/json_find.h"

namespace coppice::api {
namespace {

constexpr std::int64_t kTokenCountMax = std::numeric_limits<std::int32_t>::max();

// Fields that have another form in a chat, and those of a chat that would ask for what a message has no room for.
constexpr std::string_view kNotPassedOn[] = {"system",
                                             "messages",
                                             "tools",
                                             "tool_choice",
                                             "max_tokens",
                                             "stop_sequences",
                                             "thinking",
                                             "stop",
                                             "output_config",
                                             "output_format",
                                             "response_format",
                                             "n",
                                             "n_cmpl",
                                             "n_predict",
                                             "max_completion_tokens",
                                             "logprobs",
                                             "top_logprobs",
                                             "n_probs",
                                             "return_tokens",
                                             "return_progress",
                                             "stream_options",
                                             "continue_final_message",
                                             "add_generation_prompt"};

Result<void> read_tools(const Json& body, Json& chat) {
  const Json* tools = find_field(body, "tools");
  if (tools == nullptr) return {};
  if (!tools->is_array()) return wrong_field("tools", "must be a list");
  Json functions = Json::array();
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const Json& tool = (*tools)[i];
    const std::string path = "tools[" + std::to_string(i) + "]";
    if (!tool.is_object()) return wrong_field(path, "must be an object");
    FieldReader in(tool, path + ".");
    // Tools with other types are run by Anthropic's servers, not by the client.
    const Json* type = in.find("type");
    if (type != nullptr && *type != "custom") continue;
    Json function = {{"name", in.string("name", kWordBytesMax)}};
    if (function["name"] == "") in.fail("name", "is required");
    if (const Json* description = in.find("description")) function["description"] = *description;
    if (const Json* schema = in.find("input_schema")) function["parameters"] = *schema;
    if (in.error()) return std::unexpected(*in.error());
    functions.push_back({{"type", "function"}, {"function", std::move(function)}});
    carry_mark(tool, functions.back());
  }
  if (!functions.empty()) chat["tools"] = std::move(functions);
  return {};
}

Result<void> read_tool_choice(const Json& body, Json& chat) {
  const Json* choice = find_field(body, "tool_choice");
  if (choice == nullptr) return {};
  if (!choice->is_object()) return wrong_field("tool_choice", "must be an object");
  FieldReader in(*choice, "tool_choice.");
  const std::string type = in.string("type", kWordBytesMax);
  if (type == "any") {
    chat["tool_choice"] = "required";
  } else if (type == "tool") {
    const std::string name = in.string("name", kWordBytesMax);
    if (name.empty()) in.fail("name", "is required");
    chat["tool_choice"] = {{"type", "function"}, {"function", {{"name", name}}}};
  } else if (type == "auto" || type == "none") {
    chat["tool_choice"] = type;
  } else {
    in.fail("type", "must be auto, any, tool or none");
  }
  if (in.boolean("disable_parallel_tool_use", false)) chat["parallel_tool_calls"] = false;
  if (in.error()) return std::unexpected(*in.error());
  return {};
}

Result<void> read_thinking(const Json& body, Json& chat) {
  const Json* thinking = find_field(body, "thinking");
  if (thinking == nullptr) return {};
  if (!thinking->is_object()) return wrong_field("thinking", "must be an object");
  FieldReader in(*thinking, "thinking.");
  const std::string type = in.string("type", kWordBytesMax);
  const auto budget = in.integer("budget_tokens", 0, kTokenCountMax);
  if (type == "enabled" || type == "adaptive") {
    chat["enable_thinking"] = true;
    if (budget) chat["reasoning_budget_tokens"] = *budget;
  } else if (type == "disabled") {
    chat["enable_thinking"] = false;
  } else {
    in.fail("type", "must be enabled, disabled or adaptive");
  }
  if (in.error()) return std::unexpected(*in.error());
  return {};
}

Result<void> read_format(const Json& format, const std::string& path, Json& chat) {
  if (!format.is_object()) return wrong_field(path, "must be an object");
  FieldReader in(format, path + ".");
  const std::string type = in.string("type", kWordBytesMax);
  if (type != "json_schema") in.fail("type", "must be json_schema");
  const Json* schema = in.find("schema");
  if (schema == nullptr || !schema->is_object()) in.fail("schema", "must be a JSON schema object");
  if (in.error()) return std::unexpected(*in.error());
  chat["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"schema", *schema}}}};
  return {};
}

Result<void> read_output(const Json& body, Json& chat) {
  const Json* format = find_field(body, "output_format");
  if (const Json* config = find_field(body, "output_config")) {
    if (!config->is_object()) return wrong_field("output_config", "must be an object");
    FieldReader in(*config, "output_config.");
    const std::string effort = in.string("effort", kWordBytesMax);
    if (in.error()) return std::unexpected(*in.error());
    // Templates print the word, and those that do know these three.
    if (!effort.empty()) chat["reasoning_effort"] = effort == "max" || effort == "xhigh" ? "high" : effort;
    if (const Json* inner = in.find("format")) return read_format(*inner, "output_config.format", chat);
  }
  return format == nullptr ? Result<void>{} : read_format(*format, "output_format", chat);
}

Result<void> read_stops(const Json& body, Json& chat) {
  const Json* stops = find_field(body, "stop_sequences");
  if (stops == nullptr) return {};
  if (!stops->is_array()) return wrong_field("stop_sequences", "must be a list of strings");
  if (!std::ranges::all_of(*stops, [](const Json& stop) { return stop.is_string(); })) {
    return wrong_field("stop_sequences", "must be a list of strings");
  }
  chat["stop"] = *stops;
  return {};
}

}  // namespace

Result<Json> anthropic_to_chat(const Json& body, AnthropicCall call) {
  FieldReader in(body);
  const auto max_tokens = in.integer("max_tokens", 1, kTokenCountMax);
  if (call == AnthropicCall::create && !max_tokens) in.fail("max_tokens", "is required");
  if (in.error()) return std::unexpected(*in.error());

  Json chat = Json::object();
  for (const auto& [key, value] : body.items()) {
    if (std::ranges::find(kNotPassedOn, key) == std::end(kNotPassedOn)) chat[key] = value;
  }
  auto messages = anthropic_messages_to_chat(body);
  if (!messages) return std::unexpected(messages.error());
  chat["messages"] = *std::move(messages);
  if (max_tokens) chat["max_tokens"] = *max_tokens;
  for (const auto read : {read_tools, read_tool_choice, read_thinking, read_output, read_stops}) {
    if (auto ok = read(body, chat); !ok) return std::unexpected(ok.error());
  }
  return chat;
}

}  // namespace coppice::api
