#include "api/conversation.h"

#include <openssl/sha.h>

#include <span>

#include "api/normalise.h"
#include "base/json.h"
#include "base/json_find.h"
#include "base/json_text.h"
#include "base/trim.h"

namespace coppice::api {
namespace {

// What changes most of what a template renders around the messages. Not how the next answer is to be: a client that
// forbids tools for its last question goes on with the same conversation. Whether a rendering goes on from a turn is
// seen from its text.
constexpr const char* kShapes[] = {"tools", "chat_template_kwargs", "reasoning_effort"};

// What changes the rules of an answer, beside those.
constexpr const char* kAnswerShapes[] = {
    "tool_choice",      "parallel_tool_calls",     "response_format",        "json_schema",
    "grammar",          "reasoning_budget_tokens", "thinking_budget_tokens", "reasoning_budget_message",
    "reasoning_format", "add_generation_prompt",   "continue_final_message"};

// The text of a content field: a string, parts of type text, or nothing.
std::string text_of(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return {};
  if (content->is_string()) return content->get<std::string>();
  return joined_text(*content).value_or(to_text(*content));
}

// Keys sorted, no spaces: nlohmann::json, unlike our Json, orders its keys.
std::string canonical_arguments(const std::string& arguments) {
  const auto parsed = nlohmann::json::parse(arguments, nullptr, false);
  if (parsed.is_discarded()) return arguments;
  return parsed.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A list of texts that cannot be mistaken for another list.
void add(std::string& form, std::string_view text) {
  form += std::to_string(text.size());
  form += ':';
  form += text;
}

void add_call(std::string& form, const std::string& name, const std::string& arguments) {
  add(form, "call");
  add(form, name);
  add(form, canonical_arguments(arguments));
}

std::string assistant_form(std::string_view content) {
  std::string form;
  add(form, "assistant");
  add(form, trimmed(content));
  return form;
}

std::string field(const Json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end()) return {};
  return it->is_string() ? it->get<std::string>() : to_text(*it);
}

std::string normal_form(const Json& message) {
  if (!message.is_object()) return to_text(message);
  const std::string role = field(message, "role");
  if (role != "assistant") {
    std::string form;
    add(form, role == "developer" ? "system" : role);
    add(form, text_of(message));
    if (message.contains("name")) add(form, field(message, "name"));
    return form;
  }
  std::string form = assistant_form(text_of(message));
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return form;
  for (const Json& call : *calls) {
    const auto function = call.is_object() ? call.find("function") : call.end();
    if (!call.is_object() || function == call.end() || !function->is_object()) {
      add(form, to_text(call));
    } else {
      add_call(form, field(*function, "name"), field(*function, "arguments"));
    }
  }
  return form;
}

Digest chained(const Digest& before, std::string_view form) {
  std::string bytes(reinterpret_cast<const char*>(before.data()), before.size());
  bytes += form;
  return digest_of(bytes);
}

void add_fields(std::string& form, const Json& body, std::span<const char* const> names) {
  for (const char* name : names) {
    const Json* value = find_field(body, name);
    const bool absent = value == nullptr || (value->is_array() && value->empty());
    add(form, absent ? "" : to_text(*value));
  }
}

std::string shape_of(NamespaceId ns, const Json& body) {
  std::string shape;
  add(shape, std::to_string(ns.value));
  add_fields(shape, body, kShapes);
  return shape;
}

}  // namespace

Digest digest_of(std::string_view bytes) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return digest;
}

Digest answer_shape_digest(NamespaceId ns, const Json& body) {
  std::string shape = shape_of(ns, body);
  add_fields(shape, body, kAnswerShapes);
  return digest_of(shape);
}

std::vector<Digest> conversation_digests(NamespaceId ns, const Json& body) {
  std::vector<Digest> digests;
  const auto messages = body.find("messages");
  if (messages == body.end() || !messages->is_array()) return digests;
  Digest last = digest_of(shape_of(ns, body));
  for (const Json& message : *messages) digests.push_back(last = chained(last, normal_form(message)));
  return digests;
}

Digest digest_after(const Digest& before, const chat::Message& answer) {
  std::string form = assistant_form(answer.content);
  for (const chat::ToolCall& call : answer.tool_calls) add_call(form, call.name, call.arguments);
  return chained(before, form);
}

}  // namespace coppice::api
