#include "api/anthropic_messages.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "api/cache_marks.h"
#include "api/fields.h"
#include "api/normalise.h"
#include "base/json.h"
#include "base/json_text.h"

namespace coppice::api {
namespace {

// A block's text under `field`.
Result<std::string> required_string(const Json& block, const char* field, const std::string& path) {
  const auto found = block.find(field);
  if (found == block.end() || !found->is_string()) return wrong_field(path + "." + field, "must be a string");
  return found->get<std::string>();
}

Result<std::string> type_of(const Json& block, const std::string& path) {
  if (!block.is_object()) return wrong_field(path, "must be an object with a type");
  return required_string(block, "type", path);
}

std::unexpected<Error> refuse_block(const std::string& type, const std::string& path) {
  if (type == "image" || type == "document") {
    return wrong_field(path, "is of type '" + type + "', but this server reads text only");
  }
  return wrong_field(path + ".type", "is '" + type + "', which is not supported here");
}

Result<Json> text_part(const Json& block, const std::string& path) {
  auto text = required_string(block, "text", path);
  if (!text) return std::unexpected(text.error());
  Json part = {{"type", "text"}, {"text", *std::move(text)}};
  carry_mark(block, part);
  return part;
}

// Calls read(block, type, path) for each block of a list, until one fails.
template <class Read>
Result<void> each_block(const Json& content, const std::string& path, Read read) {
  if (!content.is_array()) return wrong_field(path, "must be a string or a list of content blocks");
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string here = path + "[" + std::to_string(i) + "]";
    const auto type = type_of(content[i], here);
    if (!type) return std::unexpected(type.error());
    if (auto ok = read(content[i], *type, here); !ok) return ok;
  }
  return {};
}

// Content that may be text alone.
Result<Json> text_content(const Json& content, const std::string& path) {
  if (content.is_string()) return content;
  Json parts = Json::array();
  auto read = each_block(content, path, [&](const Json& block, const std::string& type, const std::string& here) {
    if (type != "text") return Result<void>(refuse_block(type, here));
    auto part = text_part(block, here);
    if (!part) return Result<void>(std::unexpected(part.error()));
    parts.push_back(*std::move(part));
    return Result<void>{};
  });
  if (!read) return std::unexpected(read.error());
  return parts;
}

bool speaks_of_error(std::string_view text) {
  constexpr std::string_view kWord = "error";
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return !std::ranges::search(line, kWord, same).empty();
}

// A result that is marked as an error must read like one: templates have no other way to say so.
Json as_error(const Json& content) {
  const std::string text = content.is_string() ? content.get<std::string>() : joined_text(content).value_or("");
  if (text.empty()) return "Error";
  return speaks_of_error(text) ? Json(text) : Json("Error: " + text);
}

Result<Json> tool_message(const Json& block, const std::string& path) {
  auto id = required_string(block, "tool_use_id", path);
  if (!id) return std::unexpected(id.error());
  FieldReader in(block, path + ".");
  const bool is_error = in.boolean("is_error", false);
  if (in.error()) return std::unexpected(*in.error());
  Json content = "";
  if (const Json* given = in.find("content")) {
    auto text = text_content(*given, path + ".content");
    if (!text) return std::unexpected(text.error());
    content = *std::move(text);
  }
  Json message = {
      {"role", "tool"}, {"tool_call_id", *id}, {"content", is_error ? as_error(content) : std::move(content)}};
  carry_mark(block, message);
  return message;
}

// Results of tools are messages of their own in a chat. What the user says before, between and after them stays there.
Result<void> add_user(const Json& content, const std::string& path, Json& messages) {
  const std::size_t before = messages.size();
  Json parts = Json::array();
  const auto flush = [&] {
    if (parts.empty()) return;
    messages.push_back({{"role", "user"}, {"content", std::exchange(parts, Json::array())}});
  };
  auto read = each_block(content, path, [&](const Json& block, const std::string& type, const std::string& here) {
    const bool result = type == "tool_result";
    if (!result && type != "text") return Result<void>(refuse_block(type, here));
    auto made = result ? tool_message(block, here) : text_part(block, here);
    if (!made) return Result<void>(std::unexpected(made.error()));
    if (result) flush();
    (result ? messages : parts).push_back(*std::move(made));
    return Result<void>{};
  });
  if (!read) return read;
  flush();
  if (messages.size() == before) messages.push_back({{"role", "user"}, {"content", ""}});
  return {};
}

Result<Json> tool_call(const Json& block, const std::string& path) {
  auto id = required_string(block, "id", path);
  if (!id) return std::unexpected(id.error());
  auto name = required_string(block, "name", path);
  if (!name) return std::unexpected(name.error());
  const auto input = block.find("input");
  const bool missing = input == block.end() || input->is_null();
  if (!missing && !input->is_object()) return wrong_field(path + ".input", "must be an object");
  return Json{{"id", *id},
              {"type", "function"},
              {"function", {{"name", *name}, {"arguments", missing ? "{}" : to_text(*input)}}}};
}

// The parts of an assistant's message, collected block by block.
struct AssistantParts {
  Json text = Json::array(), calls = Json::array();
  Json mark = Json::object();  // of a call
  std::string reasoning, signature;

  Result<void> add(const Json& block, const std::string& type, const std::string& path) {
    if (type == "redacted_thinking") return {};  // nobody here can read it
    if (type == "thinking") return add_thinking(block, path);
    if (type != "text" && type != "tool_use") return refuse_block(type, path);
    auto made = type == "text" ? text_part(block, path) : tool_call(block, path);
    if (!made) return std::unexpected(made.error());
    (type == "text" ? text : calls).push_back(*std::move(made));
    if (type == "tool_use") carry_mark(block, mark);
    return {};
  }

  Result<void> add_thinking(const Json& block, const std::string& path) {
    auto thought = required_string(block, "thinking", path);
    if (!thought) return std::unexpected(thought.error());
    reasoning += *thought;
    const auto signed_by = block.find("signature");
    if (signature.empty() && signed_by != block.end() && signed_by->is_string())
      signature = signed_by->get<std::string>();
    return {};
  }
};

Result<void> add_assistant(const Json& content, const std::string& path, Json& messages) {
  AssistantParts parts;
  auto read = each_block(content, path, [&](const Json& block, const std::string& type, const std::string& here) {
    return parts.add(block, type, here);
  });
  if (!read) return read;
  Json message = {{"role", "assistant"}};
  const bool only_calls = parts.text.empty() && !parts.calls.empty();
  message["content"] = only_calls ? Json(nullptr) : std::move(parts.text);
  if (!parts.reasoning.empty()) message["reasoning_content"] = std::move(parts.reasoning);
  if (!parts.signature.empty()) message["reasoning_signature"] = std::move(parts.signature);
  if (!parts.calls.empty()) message["tool_calls"] = std::move(parts.calls);
  message.update(parts.mark);
  messages.push_back(std::move(message));
  return {};
}

Result<void> add_system(const Json& content, const std::string& path, Json& messages) {
  auto text = text_content(content, path);
  if (!text) return std::unexpected(text.error());
  messages.push_back({{"role", "system"}, {"content", *std::move(text)}});
  return {};
}

Result<void> add_message(const Json& message, const std::string& path, Json& messages) {
  if (!message.is_object()) return wrong_field(path, "must be an object");
  const Json role = message.value("role", Json());
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return wrong_field(path + ".content", "is required");
  const std::string here = path + ".content";
  if (role == "system") return add_system(*content, here, messages);
  if (role != "user" && role != "assistant") return wrong_field(path + ".role", "must be user, assistant or system");
  if (content->is_string()) {
    messages.push_back({{"role", role}, {"content", *content}});
    return {};
  }
  return role == "user" ? add_user(*content, here, messages) : add_assistant(*content, here, messages);
}

}  // namespace

Result<Json> anthropic_messages_to_chat(const Json& body) {
  FieldReader in(body);
  Json out = Json::array();
  if (const Json* system = in.find("system")) {
    if (auto ok = add_system(*system, "system", out); !ok) return std::unexpected(ok.error());
    if (out.back()["content"].empty() || out.back()["content"] == "") out.clear();
  }
  const Json* messages = in.find("messages");
  if (messages == nullptr || !messages->is_array())
    in.fail("messages", "must be a list of messages");
  else if (messages->empty())
    in.fail("messages", "must hold at least one message");
  if (in.error()) return std::unexpected(*in.error());
  for (std::size_t i = 0; i < messages->size(); ++i) {
    if (auto ok = add_message((*messages)[i], "messages[" + std::to_string(i) + "]", out); !ok) {
      return std::unexpected(ok.error());
    }
  }
  return out;
}

}  // namespace coppice::api
