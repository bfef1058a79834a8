#include "api/responses_items.h"

#include <utility>

#include "api/cache_marks.h"
#include "api/fields.h"
#include "base/json.h"

namespace coppice::api {
namespace {

bool is_text_part(const std::string& type) {
  return type == "input_text" || type == "output_text" || type == "text" || type == "summary_text" ||
         type == "reasoning_text" || type == "refusal";
}

Error wrong_part(const std::string& type, const std::string& path) {
  if (type.empty()) return {ErrorKind::invalid_request, "'" + path + ".type' is required", path + ".type"};
  if (type.starts_with("input_") || type.find("image") != std::string::npos) {
    return {ErrorKind::invalid_request,
            "this server takes text only; a content part of type '" + type + "' is not supported", path};
  }
  return {ErrorKind::invalid_request,
          "unknown content part type '" + type + "'; use 'input_text', or 'output_text' for the assistant",
          path + ".type"};
}

Result<std::string> read_part(const Json& part, const std::string& path) {
  if (!part.is_object()) return invalid("'" + path + "' must be an object with a type", path);
  FieldReader in(part, path + ".");
  const std::string type = in.string("type", kWordBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  if (!is_text_part(type)) return std::unexpected(wrong_part(type, path));
  const char* field = type == "refusal" ? "refusal" : "text";
  std::string text = in.string(field, kTextBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  if (in.find(field) == nullptr) return invalid("'" + path + "." + field + "' is required", path + "." + field);
  return text;
}

void append_line(std::string& text, const std::string& more) {
  if (!text.empty() && !more.empty()) text += '\n';
  text += more;
}

// Adds the message, with the marks of the parts that it was made of.
void push_message(Json& messages, Json message, const Json* content) {
  if (content != nullptr && content->is_array()) {
    for (const Json& part : *content) carry_mark(part, message);
  }
  messages.push_back(std::move(message));
}

}  // namespace

Result<std::string> read_item_text(const Json* content, const std::string& path) {
  if (content == nullptr) return std::string{};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) return invalid("'" + path + "' must be a string or an array of parts", path);
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i) {
    const auto part = read_part((*content)[i], path + "[" + std::to_string(i) + "]");
    if (!part) return part;
    if (!text.empty()) text += '\n';
    text += *part;
  }
  return text;
}

struct ResponsesMessages::Answer {
  std::string text, reasoning;
  Json calls = Json::array();
  bool text_is_closed = false;  // the next text is another message's
};

ResponsesMessages::ResponsesMessages(const ToolNames& names)
    : names_(names), messages_(std::make_unique<Json>(Json::array())) {}

ResponsesMessages::~ResponsesMessages() = default;

void ResponsesMessages::add_instructions(const std::string& text) {
  end_answer();
  messages_->push_back({{"role", "system"}, {"content", text}});
}

Result<void> ResponsesMessages::add(const Json& item, const std::string& path) {
  if (!item.is_object()) return invalid("'" + path + "' must be an object", path);
  FieldReader in(item, path + ".");
  const std::string type = in.string("type", kWordBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  if (type == "message" || (type.empty() && item.contains("role"))) return add_message(item, path);
  if (type.empty()) return invalid("'" + path + ".type' is required", path + ".type");
  if (type == "reasoning") return add_reasoning(item, path);
  if (type == "function_call") return add_call(item, path, false);
  if (type == "custom_tool_call") return add_call(item, path, true);
  if (type == "function_call_output" || type == "custom_tool_call_output") return add_call_output(item, path);
  return {};
}

Result<void> ResponsesMessages::add_message(const Json& item, const std::string& path) {
  FieldReader in(item, path + ".");
  const std::string role = in.string("role", kWordBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  if (role != "user" && role != "assistant" && role != "system" && role != "developer") {
    const std::string what = role.empty() ? "'" + path + ".role' is required" : "unknown role '" + role + "'";
    return invalid(what + "; use user, assistant, system or developer", path + ".role");
  }
  const auto text = read_item_text(in.find("content"), path + ".content");
  if (!text) return std::unexpected(text.error());
  if (role == "assistant") {
    Answer& open = answer();
    if (open.text_is_closed) {
      append_line(open.text, *text);
    } else {
      open.text += *text;
    }
    open.text_is_closed = true;
    return {};
  }
  end_answer();
  push_message(*messages_, {{"role", role}, {"content", *text}}, in.find("content"));
  return {};
}

// Clients send back the text of it, or a summary, or only `encrypted_content`, which has nothing for the model in it.
Result<void> ResponsesMessages::add_reasoning(const Json& item, const std::string& path) {
  const FieldReader in(item);
  auto text = read_item_text(in.find("content"), path + ".content");
  if (!text) return std::unexpected(text.error());
  const auto summary = read_item_text(in.find("summary"), path + ".summary");
  if (!summary) return std::unexpected(summary.error());
  if (answer_ && (!answer_->text.empty() || !answer_->calls.empty())) end_answer();
  append_line(answer().reasoning, text->empty() ? *summary : *text);
  return {};
}

Result<void> ResponsesMessages::add_call(const Json& item, const std::string& path, bool custom) {
  FieldReader in(item, path + ".");
  const std::string name = in.string("name", kWordBytesMax), space = in.string("namespace", kWordBytesMax);
  const std::string call_id = in.string("call_id", kWordBytesMax);
  std::string arguments = in.string(custom ? "input" : "arguments", kTextBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  if (name.empty()) return invalid("'" + path + ".name' is required", path + ".name");
  if (call_id.empty()) return invalid("'" + path + ".call_id' is required", path + ".call_id");
  if (custom) arguments = custom_arguments(arguments);
  Answer& open = answer();
  open.text_is_closed = false;  // text behind a call goes on with the text before it
  open.calls.push_back({{"id", call_id},
                        {"type", "function"},
                        {"function", {{"name", names_.flat(space, name)}, {"arguments", std::move(arguments)}}}});
  return {};
}

Result<void> ResponsesMessages::add_call_output(const Json& item, const std::string& path) {
  FieldReader in(item, path + ".");
  const std::string call_id = in.string("call_id", kWordBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  if (call_id.empty()) return invalid("'" + path + ".call_id' is required", path + ".call_id");
  const auto text = read_item_text(in.find("output"), path + ".output");
  if (!text) return std::unexpected(text.error());
  end_answer();
  push_message(*messages_, {{"role", "tool"}, {"tool_call_id", call_id}, {"content", *text}}, in.find("output"));
  return {};
}

ResponsesMessages::Answer& ResponsesMessages::answer() {
  if (!answer_) answer_ = std::make_unique<Answer>();
  return *answer_;
}

void ResponsesMessages::end_answer() {
  const auto ended = std::exchange(answer_, nullptr);
  if (!ended) return;
  const bool only_calls = ended->text.empty() && !ended->calls.empty();
  Json message = {{"role", "assistant"}, {"content", only_calls ? Json(nullptr) : Json(ended->text)}};
  if (!ended->reasoning.empty()) message["reasoning_content"] = ended->reasoning;
  if (!ended->calls.empty()) message["tool_calls"] = std::move(ended->calls);
  messages_->push_back(std::move(message));
}

Json ResponsesMessages::take() {
  end_answer();
  return std::exchange(*messages_, Json::array());
}

}  // namespace coppice::api
