#include "api/responses_request.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "api/fields.h"
#include "api/responses_items.h"

namespace coppice::api {
namespace {

// Fields that are translated, and Chat Completions fields that mean nothing here. All others go through as they are:
// sampling, placement, what names a session.
constexpr std::string_view kNotPassedOn[] = {
    "instructions",    "input",         "tools",        "tool_choice",     "text",
    "reasoning",       "include",       "truncation",   "max_tool_calls",  "max_output_tokens",
    "background",      "prompt",        "conversation", "messages",        "n",
    "n_cmpl",          "logprobs",      "top_logprobs", "n_probs",         "max_tokens",
    "n_predict",       "echo",          "suffix",       "response_format", "max_completion_tokens",
    "return_progress", "return_tokens",
};

Result<void> refuse_unsupported(const Json& body) {
  FieldReader in(body);
  if (in.boolean("background", false)) in.fail("background", "is not supported");
  for (const char* field : {"prompt", "conversation"}) {
    if (in.find(field) != nullptr) in.fail(field, "is not supported; send instructions and input");
  }
  if (in.error()) return std::unexpected(*in.error());
  return {};
}

Result<void> read_text_format(const Json& body, Json& chat) {
  const Json* text = FieldReader(body).find("text");
  if (text == nullptr) return {};
  if (!text->is_object()) return invalid("'text' must be an object", "text");
  const Json* format = FieldReader(*text).find("format");
  if (format == nullptr) return {};
  if (!format->is_object()) return invalid("'text.format' must be an object", "text.format");
  FieldReader in(*format, "text.format.");
  const std::string type = in.string("type", kWordBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  if (type == "text") return {};
  if (type == "json_object") {
    chat["response_format"] = {{"type", type}};
    return {};
  }
  if (type != "json_schema") {
    return invalid("'text.format.type' must be text, json_object or json_schema", "text.format.type");
  }
  const Json* schema = in.find("schema");
  if (schema == nullptr || !schema->is_object()) {
    return invalid("'text.format.schema' must be a JSON schema object", "text.format.schema");
  }
  chat["response_format"] = {{"type", type}, {"json_schema", {{"schema", *schema}}}};
  return {};
}

Result<void> read_reasoning(const Json& body, Json& chat) {
  const Json* reasoning = FieldReader(body).find("reasoning");
  if (reasoning == nullptr) return {};
  if (!reasoning->is_object()) return invalid("'reasoning' must be an object", "reasoning");
  FieldReader in(*reasoning, "reasoning.");
  const std::string effort = in.string("effort", kWordBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  if (!effort.empty()) chat["reasoning_effort"] = effort;
  return {};
}

Result<void> read_length(const Json& body, Json& chat) {
  FieldReader in(body);
  const auto n = in.integer("max_output_tokens", 1, std::numeric_limits<std::int32_t>::max());
  if (in.error()) return std::unexpected(*in.error());
  if (n) chat["max_completion_tokens"] = *n;
  return {};
}

Result<Json> resolve(const Json& item, const std::string& path, const FindItem& find_item) {
  const auto type = item.is_object() ? item.find("type") : item.end();
  if (!item.is_object() || type == item.end() || *type != "item_reference") return item;
  FieldReader in(item, path + ".");
  const std::string id = in.string("id", kWordBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  if (auto found = find_item(id)) return *std::move(found);
  return fail(ErrorKind::not_found,
              "Item with id '" + id + "' not found. Items are kept with a response that was made with 'store': true.",
              "input");
}

// The request's own items as a list.
Result<Json> read_input(const Json& body, const FindItem& find_item) {
  const Json* input = FieldReader(body).find("input");
  Json items = Json::array();
  if (input == nullptr) return items;
  if (input->is_string()) {
    Json content = Json::array();
    content.push_back({{"type", "input_text"}, {"text", *input}});
    items.push_back({{"type", "message"}, {"role", "user"}, {"content", std::move(content)}});
    return items;
  }
  if (!input->is_array()) return invalid("'input' must be a string or an array of items", "input");
  for (std::size_t i = 0; i < input->size(); ++i) {
    auto item = resolve((*input)[i], "input[" + std::to_string(i) + "]", find_item);
    if (!item) return item;
    items.push_back(*std::move(item));
  }
  return items;
}

Result<void> read_messages(const Json& body, const Json& history, ResponsesRequest& out) {
  FieldReader in(body);
  const std::string instructions = in.string("instructions", kTextBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  ResponsesMessages messages(out.tools);
  out.has_instructions = !instructions.empty();
  if (out.has_instructions) messages.add_instructions(instructions);
  for (const Json& item : history) {
    if (auto ok = messages.add(item, "previous_response_id"); !ok) return ok;
  }
  for (std::size_t i = 0; i < out.input.size(); ++i) {
    if (auto ok = messages.add(out.input[i], "input[" + std::to_string(i) + "]"); !ok) return ok;
  }
  out.chat["messages"] = messages.take();
  if (out.chat["messages"].empty()) return invalid("'input' is required", "input");
  return {};
}

}  // namespace

Result<ResponsesRequest> read_responses_request(const Json& body, const Json& history, const FindItem& find_item) {
  if (auto ok = refuse_unsupported(body); !ok) return std::unexpected(ok.error());
  ResponsesRequest out;
  out.chat = Json::object();
  for (const auto& [field, value] : body.items()) {
    if (std::ranges::find(kNotPassedOn, field) == std::end(kNotPassedOn)) out.chat[field] = value;
  }
  for (const auto read : {read_text_format, read_reasoning, read_length}) {
    if (auto ok = read(body, out.chat); !ok) return std::unexpected(ok.error());
  }
  auto tools = read_tools(body, out.chat);
  if (!tools) return std::unexpected(tools.error());
  out.tools = *std::move(tools);
  auto input = read_input(body, find_item);
  if (!input) return std::unexpected(input.error());
  out.input = *std::move(input);
  if (auto ok = read_messages(body, history, out); !ok) return std::unexpected(ok.error());
  FieldReader in(body);
  out.store = in.boolean("store", true);
  if (const Json* metadata = in.find("metadata"); metadata != nullptr && !metadata->is_object()) {
    in.fail("metadata", "must be an object");
  }
  if (in.error()) return std::unexpected(*in.error());
  return out;
}

}  // namespace coppice::api
