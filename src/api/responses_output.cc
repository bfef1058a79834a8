#include "api/responses_output.h"

#include <utility>

#include "api/json_text.h"
#include "base/json.h"

namespace coppice::api {
namespace {

constexpr const char* kArgumentsDelta = "response.function_call_arguments.delta";
constexpr const char* kInputDelta = "response.custom_tool_call_input.delta";

Json text_part(const std::string& text) {
  return {{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
}

Json summary_part(const std::string& text) { return {{"type", "summary_text"}, {"text", text}}; }

Json reasoning_part(const std::string& text) { return {{"type", "reasoning_text"}, {"text", text}}; }

Json with(Json fields, const char* name, Json value) {
  fields[name] = std::move(value);
  return fields;
}

}  // namespace

ResponsesOutput::ResponsesOutput(std::string stem, ToolNames tools, bool with_summaries)
    : stem_(std::move(stem)),
      tools_(std::move(tools)),
      with_summaries_(with_summaries),
      items_(std::make_unique<Json>(Json::array())),
      item_(std::make_unique<Json>()) {}

ResponsesOutput::~ResponsesOutput() = default;

std::string ResponsesOutput::event(const char* type, Json fields) {
  Json data = {{"type", type}, {"sequence_number", sequence_number_++}};
  for (auto& [name, value] : fields.items()) data[name] = std::move(value);
  return "event: " + std::string(type) + "\n" + to_sse(data);
}

std::string ResponsesOutput::feed(const chat::MessageDelta& delta) {
  std::string out;
  if (!delta.reasoning.empty()) out += add_text(Kind::reasoning, delta.reasoning);
  if (!delta.content.empty()) out += add_text(Kind::message, delta.content);
  if (!delta.tool_index) return out;
  if (!delta.tool_name.empty()) out += open_call(delta);
  return out += add_arguments(delta);
}

Json ResponsesOutput::place() const { return {{"item_id", (*item_)["id"]}, {"output_index", items_->size()}}; }

Json ResponsesOutput::summary_place() const { return with(place(), "summary_index", 0); }

std::string ResponsesOutput::open(Kind kind, Json item, const char* id_prefix) {
  std::string out = end(true);
  kind_ = kind;
  item["id"] = id_prefix + stem_ + "_" + std::to_string(items_->size());
  if (kind == Kind::reasoning) item["encrypted_content"] = item["id"];
  *item_ = item;
  return out += event("response.output_item.added", {{"output_index", items_->size()}, {"item", std::move(item)}});
}

std::string ResponsesOutput::open_part(const char* type) {
  Json part = std::string_view(type) == "output_text" ? text_part("") : reasoning_part("");
  Json fields = with(place(), "content_index", 0);
  return event("response.content_part.added", with(std::move(fields), "part", std::move(part)));
}

std::string ResponsesOutput::add_text(Kind kind, const std::string& text) {
  std::string out;
  if (kind == Kind::message && kind_ != kind) {
    Json item = {{"id", ""}, {"type", "message"}, {"status", "in_progress"}, {"role", "assistant"}};
    out += open(kind, with(std::move(item), "content", Json::array()), "msg_");
    out += open_part("output_text");
  } else if (kind == Kind::reasoning && kind_ != kind) {
    Json item = {{"id", ""}, {"type", "reasoning"}, {"status", "in_progress"}};
    item["summary"] = Json::array();
    item["content"] = Json::array();
    out += open(kind, std::move(item), "rs_");
    out += open_part("reasoning_text");
    if (with_summaries_) {
      out += event("response.reasoning_summary_part.added", with(summary_place(), "part", summary_part("")));
    }
  }
  text_ += text;
  if (kind == Kind::reasoning && with_summaries_) {
    out += event("response.reasoning_summary_text.delta", with(summary_place(), "delta", text));
  }
  return out += delta(kind == Kind::message ? "response.output_text.delta" : "response.reasoning_text.delta", text);
}

std::string ResponsesOutput::open_call(const chat::MessageDelta& delta) {
  const ToolName tool = tools_.find(delta.tool_name);
  Json item = {{"id", ""}, {"type", tool.custom ? "custom_tool_call" : "function_call"}, {"status", "in_progress"}};
  item["call_id"] = delta.tool_id;
  if (!tool.space.empty()) item["namespace"] = tool.space;
  item["name"] = tool.name;
  item[tool.custom ? "input" : "arguments"] = "";
  call_index_ = *delta.tool_index;
  return tool.custom ? open(Kind::custom, std::move(item), "ctc_") : open(Kind::function, std::move(item), "fc_");
}

std::string ResponsesOutput::add_arguments(const chat::MessageDelta& delta) {
  const bool is_open = (kind_ == Kind::function || kind_ == Kind::custom) && call_index_ == *delta.tool_index;
  // Behind a call that is done the parser does not go back to it; should it ever, what was told stays as it was told.
  if (!is_open || delta.tool_arguments.empty()) return {};
  text_ += delta.tool_arguments;
  if (kind_ != Kind::custom) return this->delta(kArgumentsDelta, delta.tool_arguments);
  const std::string input = custom_input_.feed(delta.tool_arguments);
  return input.empty() ? std::string{} : this->delta(kInputDelta, input);
}

std::string ResponsesOutput::delta(const char* type, const std::string& text) {
  Json fields = place();
  if (kind_ == Kind::message || kind_ == Kind::reasoning) fields["content_index"] = 0;
  fields["delta"] = text;
  if (kind_ == Kind::message) fields["logprobs"] = Json::array();
  return event(type, std::move(fields));
}

std::string ResponsesOutput::close_message(Json& item) {
  const Json where = with(place(), "content_index", 0);
  std::string out = event("response.output_text.done", with(with(where, "text", text_), "logprobs", Json::array()));
  out += event("response.content_part.done", with(where, "part", text_part(text_)));
  item["content"].push_back(text_part(text_));
  return out;
}

std::string ResponsesOutput::close_reasoning(Json& item) {
  std::string out;
  if (with_summaries_) {
    out += event("response.reasoning_summary_text.done", with(summary_place(), "text", text_));
    out += event("response.reasoning_summary_part.done", with(summary_place(), "part", summary_part(text_)));
    item["summary"].push_back(summary_part(text_));
  }
  const Json where = with(place(), "content_index", 0);
  out += event("response.reasoning_text.done", with(where, "text", text_));
  out += event("response.content_part.done", with(where, "part", reasoning_part(text_)));
  item["content"].push_back(reasoning_part(text_));
  return out;
}

std::string ResponsesOutput::close_function(Json& item) {
  std::string out;
  if (text_.empty()) {  // a call without arguments; clients parse them as JSON
    text_ = "{}";
    out += delta(kArgumentsDelta, text_);
  }
  item["arguments"] = text_;
  return out +=
         event("response.function_call_arguments.done", with(with(place(), "name", item["name"]), "arguments", text_));
}

std::string ResponsesOutput::close_custom(Json& item) {
  const std::string input = custom_input_.readable() ? custom_input_.text() : custom_input(text_);
  std::string out;
  if (!custom_input_.readable() && !input.empty()) out += delta(kInputDelta, input);
  item["input"] = input;
  return out += event("response.custom_tool_call_input.done", with(place(), "input", input));
}

std::string ResponsesOutput::end(bool complete) {
  if (kind_ == Kind::none) return {};
  Json item = *item_;
  std::string out;
  switch (kind_) {
    case Kind::message: out = close_message(item); break;
    case Kind::reasoning: out = close_reasoning(item); break;
    case Kind::function: out = close_function(item); break;
    case Kind::custom: out = close_custom(item); break;
    case Kind::none: break;
  }
  item["status"] = complete ? "completed" : "incomplete";
  out += event("response.output_item.done", {{"output_index", items_->size()}, {"item", item}});
  items_->push_back(std::move(item));
  kind_ = Kind::none;
  text_.clear();
  custom_input_ = {};
  return out;
}

}  // namespace coppice::api
