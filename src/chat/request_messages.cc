#include <algorithm>
#include <array>
#include <string_view>

#include "base/json.h"
#include "chat/chat_request.h"
#include "chat/json_fields.h"

namespace coppice::chat {
namespace {

constexpr std::array<std::string_view, 5> roles = {"system", "developer", "user", "assistant", "tool"};

// Clients flip one message between a string and a block array as their cache marks move, so both must give one prompt.
Result<std::string> read_parts(const Json& parts, const std::string& param) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Json& part = parts[i];
    const std::string here = param + "[" + std::to_string(i) + "]";
    if (!part.is_object())
      return invalid("'" + here + "' must be an object with a type, not " + kind_of(part) + ".", here);
    const auto type = string_field(part, "type", here + ".");
    if (!type) return std::unexpected(type.error());
    const std::string name = type->value_or("");
    if (name != "text" && name != "refusal") {
      if (name.starts_with("image") || name.starts_with("input_") || name.starts_with("video") || name == "file") {
        return invalid("This server takes text only; a content part of type '" + name + "' is not supported.", here);
      }
      return invalid("Unknown content part type '" + name + "'; use 'text'.", here + ".type");
    }
    const auto piece = string_field(part, name, here + ".");
    if (!piece) return std::unexpected(piece.error());
    if (!*piece) return invalid("'" + here + "." + name + "' is required.", here + "." + name);
    if (!text.empty()) text += '\n';
    text += **piece;
  }
  return text;
}

Result<std::string> read_content(const Json& message, const std::string& path) {
  const Json* content = find_field(message, "content");
  if (content == nullptr) return "";
  if (content->is_string()) return content->get<std::string>();
  const std::string param = path + "content";
  if (!content->is_array()) {
    return invalid("'" + param + "' must be a string, null or an array of parts, not " + kind_of(*content) + ".",
                   param);
  }
  return read_parts(*content, param);
}

// Arguments as JSON text; clients send them as text or as the object itself.
Result<std::string> read_arguments(const Json& function, const std::string& path) {
  const Json* arguments = find_field(function, "arguments");
  const std::string param = path + "arguments";
  if (arguments == nullptr) return "{}";
  if (arguments->is_object()) {
    if (auto fits = check_depth(*arguments, param); !fits) return std::unexpected(fits.error());
    return to_text(*arguments);
  }
  if (!arguments->is_string()) {
    return invalid("'" + param + "' must be a string of JSON, not " + kind_of(*arguments) + ".", param);
  }
  std::string text = arguments->get<std::string>();
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return "{}";
  // The template may look into the arguments, and does so recursively. Text that is no JSON is not an error: a turn
  // that was cut short comes back in the history like that.
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_discarded()) {
    if (auto fits = check_depth(parsed, param); !fits) return std::unexpected(fits.error());
  }
  return text;
}

Result<common_chat_tool_call> read_tool_call(const Json& call, const std::string& param) {
  if (!call.is_object()) return invalid("'" + param + "' must be an object, not " + kind_of(call) + ".", param);
  const auto type = string_field(call, "type", param + ".");
  if (!type) return std::unexpected(type.error());
  if (type->value_or("function") != "function") {
    return invalid("Unknown tool call type '" + **type + "'; use 'function'.", param + ".type");
  }
  const Json* function = find_field(call, "function");
  if (function == nullptr || !function->is_object()) {
    return invalid("'" + param + ".function' must be an object.", param + ".function");
  }
  const std::string path = param + ".function.";
  auto name = string_field(*function, "name", path);
  if (!name) return std::unexpected(name.error());
  if (name->value_or("").empty()) return invalid("'" + path + "name' is required.", path + "name");
  auto id = string_field(call, "id", param + ".");
  if (!id) return std::unexpected(id.error());
  auto arguments = read_arguments(*function, path);
  if (!arguments) return std::unexpected(arguments.error());
  return common_chat_tool_call{.name = **name, .arguments = *arguments, .id = id->value_or("")};
}

Result<void> read_assistant(const Json& message, const std::string& path, common_chat_msg& out) {
  for (const std::string_view key : {"reasoning_content", "reasoning"}) {
    const auto reasoning = string_field(message, key, path);
    if (!reasoning) return std::unexpected(reasoning.error());
    if (out.reasoning_content.empty()) out.reasoning_content = reasoning->value_or("");
  }
  const Json* calls = find_field(message, "tool_calls");
  if (calls != nullptr) {
    if (!calls->is_array()) {
      return invalid("'" + path + "tool_calls' must be an array, not " + kind_of(*calls) + ".", path + "tool_calls");
    }
    for (std::size_t i = 0; i < calls->size(); ++i) {
      auto call = read_tool_call((*calls)[i], path + "tool_calls[" + std::to_string(i) + "]");
      if (!call) return std::unexpected(call.error());
      out.tool_calls.push_back(*std::move(call));
    }
  }
  if (!message.contains("content") && out.tool_calls.empty() && out.reasoning_content.empty()) {
    return invalid("An assistant message needs 'content' or 'tool_calls'.", path + "content");
  }
  return {};
}

Result<common_chat_msg> read_message(const Json& message, const std::string& param) {
  if (!message.is_object()) return invalid("'" + param + "' must be an object, not " + kind_of(message) + ".", param);
  const std::string path = param + ".";
  const auto role = string_field(message, "role", path);
  if (!role) return std::unexpected(role.error());
  if (std::ranges::find(roles, role->value_or("")) == roles.end()) {
    const std::string what = *role ? "Unknown role '" + **role + "'" : "'" + path + "role' is required";
    return invalid(what + "; use system, developer, user, assistant or tool.", path + "role");
  }
  common_chat_msg out;
  out.role = **role;
  auto content = read_content(message, path);
  if (!content) return std::unexpected(content.error());
  out.content = *std::move(content);
  if (out.role == "assistant") {
    if (auto ok = read_assistant(message, path, out); !ok) return std::unexpected(ok.error());
  } else if (!message.contains("content")) {
    return invalid("'" + path + "content' is required.", path + "content");
  }
  const auto name = string_field(message, "name", path);
  if (!name) return std::unexpected(name.error());
  if (out.role == "tool") out.tool_name = name->value_or("");
  const auto call_id = string_field(message, "tool_call_id", path);
  if (!call_id) return std::unexpected(call_id.error());
  out.tool_call_id = call_id->value_or("");
  return out;
}

}  // namespace

Result<std::vector<common_chat_msg>> read_messages(const Json& body) {
  const Json* messages = find_field(body, "messages");
  if (messages == nullptr) return invalid("'messages' is required.", "messages");
  if (!messages->is_array()) return invalid("'messages' must be an array, not " + kind_of(*messages) + ".", "messages");
  if (messages->empty()) return invalid("'messages' must hold at least one message.", "messages");
  std::vector<common_chat_msg> out;
  out.reserve(messages->size());
  for (std::size_t i = 0; i < messages->size(); ++i) {
    auto message = read_message((*messages)[i], "messages[" + std::to_string(i) + "]");
    if (!message) return std::unexpected(message.error());
    out.push_back(*std::move(message));
  }
  return out;
}

}  // namespace coppice::chat
