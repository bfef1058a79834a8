#include "client/chat_message.h"

#include <string>

namespace coppice::bench {
namespace {

// Appends the text of `from`, if it has one of that name.
void append_text(Json& to, const Json& from, const char* name) {
  const auto piece = from.find(name);
  if (piece == from.end() || !piece->is_string()) return;
  const auto held = to.find(name);
  const std::string before = held != to.end() && held->is_string() ? held->get<std::string>() : std::string();
  to[name] = before + piece->get_ref<const std::string&>();
}

}  // namespace

void ChatMessage::read(const Json& event) {
  const auto delta = Json::json_pointer("/choices/0/delta");
  if (!event.is_object() || !event.contains(delta) || !event[delta].is_object()) return;
  if (message_.is_null()) message_ = {{"role", "assistant"}, {"content", ""}};
  for (const char* name : {"content", "reasoning_content"}) append_text(message_, event[delta], name);
  const auto calls = event[delta].find("tool_calls");
  if (calls == event[delta].end() || !calls->is_array()) return;
  for (const Json& piece : *calls) read_call(piece);
  if (message_["content"] == "") message_["content"] = nullptr;
}

// The first piece of a call says what it is, each further one adds to its arguments.
void ChatMessage::read_call(const Json& piece) {
  constexpr std::size_t calls_max = 64;
  if (!piece.is_object()) return;
  Json& calls = message_["tool_calls"];
  if (calls.is_null()) calls = Json::array();
  const auto at = piece.find("index");
  const std::size_t index = at != piece.end() && at->is_number_unsigned() ? at->get<std::size_t>() : 0;
  if (index >= calls_max) return;
  while (calls.size() <= index) {
    calls.push_back({{"id", ""}, {"type", "function"}, {"function", {{"name", ""}, {"arguments", ""}}}});
  }
  append_text(calls[index], piece, "id");
  const auto function = piece.find("function");
  if (function == piece.end() || !function->is_object()) return;
  append_text(calls[index]["function"], *function, "name");
  append_text(calls[index]["function"], *function, "arguments");
}

}  // namespace coppice::bench
