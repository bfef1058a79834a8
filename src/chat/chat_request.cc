#include "chat/chat_request.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/json.h"
#include "chat/json_fields.h"
#include "engine/json_schema_check.h"

namespace coppice::chat {
namespace {

// A schema that can be handed to the grammar builder. `cost` adds up over the schemas of the request.
Result<void> check_schema(const Json& schema, const std::string& param, std::uint64_t& cost) {
  if (auto fits = check_depth(schema, param); !fits) return fits;
  if (auto sound = engine::check_json_schema(schema, param); !sound) return sound;
  cost += schema_cost(schema);
  if (cost <= schema_cost_max) return {};
  return invalid("The JSON schemas of this request are too large; '" + param + "' exceeds the limit.", param);
}

Result<common_chat_tool> read_tool(const Json& tool, const std::string& param, std::uint64_t& cost) {
  if (!tool.is_object()) return invalid("'" + param + "' must be an object, not " + kind_of(tool) + ".", param);
  const auto type = string_field(tool, "type", param + ".");
  if (!type) return std::unexpected(type.error());
  if (type->value_or("function") != "function") {
    return invalid("Tools of type '" + **type + "' are not supported; use 'function'.", param + ".type");
  }
  const Json* function = find_field(tool, "function");
  if (function == nullptr || !function->is_object()) {
    return invalid("'" + param + ".function' must be an object.", param + ".function");
  }
  const std::string path = param + ".function.";
  const auto name = string_field(*function, "name", path);
  if (!name) return std::unexpected(name.error());
  if (name->value_or("").empty()) return invalid("'" + path + "name' is required.", path + "name");
  const auto description = string_field(*function, "description", path);
  if (!description) return std::unexpected(description.error());
  // A tool without parameters is called with {}; an empty schema would allow any JSON value.
  std::string parameters = R"({"type":"object","properties":{}})";
  if (const Json* schema = find_field(*function, "parameters"); schema != nullptr && !schema->empty()) {
    if (!schema->is_object()) {
      return invalid("'" + path + "parameters' must be a JSON schema object, not " + kind_of(*schema) + ".",
                     path + "parameters");
    }
    if (auto ok = check_schema(*schema, path + "parameters", cost); !ok) return std::unexpected(ok.error());
    parameters = to_text(*schema);
  }
  return common_chat_tool{.name = **name, .description = description->value_or(""), .parameters = parameters};
}

Result<void> read_tool_choice(const Json& body, ChatRequest& request) {
  const Json* choice = find_field(body, "tool_choice");
  if (choice == nullptr) return {};
  const std::string hint = " use 'auto', 'none', 'required' or {\"type\":\"function\",\"function\":{\"name\":...}}.";
  if (choice->is_object()) {
    const Json* type = find_field(*choice, "type");
    const Json* function = find_field(*choice, "function");
    const Json* name = function == nullptr ? nullptr : find_field(*function, "name");
    if (name == nullptr || !name->is_string() || (type != nullptr && *type != "function")) {
      return invalid("'tool_choice' is not understood;" + hint, "tool_choice");
    }
    request.forced_tool = name->get<std::string>();
    if (std::ranges::find(request.tools, request.forced_tool, &common_chat_tool::name) == request.tools.end()) {
      return invalid("'tool_choice' names the function '" + request.forced_tool + "', which is not in 'tools'.",
                     "tool_choice");
    }
    request.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
    return {};
  }
  if (*choice == "auto") return {};
  if (*choice == "none") {
    request.tool_choice = COMMON_CHAT_TOOL_CHOICE_NONE;
    return {};
  }
  if (*choice != "required") return invalid("'tool_choice' is not understood;" + hint, "tool_choice");
  if (request.tools.empty()) return invalid("'tool_choice' is 'required', but there are no 'tools'.", "tool_choice");
  request.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
  return {};
}

Result<void> take_schema(const Json* schema, const std::string& param, ChatRequest& request) {
  if (schema == nullptr) return invalid("'" + param + "' is required.", param);
  if (!schema->is_object()) {
    return invalid("'" + param + "' must be a JSON schema object, not " + kind_of(*schema) + ".", param);
  }
  std::uint64_t cost = 0;
  if (auto ok = check_schema(*schema, param, cost); !ok) return ok;
  // Template code takes an empty schema for none, so "any JSON" is spelled out as what clients mean by it.
  request.json_schema = schema->empty() ? R"({"type":"object"})" : to_text(*schema);
  request.schema_param = param;
  return {};
}

Result<void> read_response_format(const Json& format, ChatRequest& request) {
  if (!format.is_object()) {
    return invalid("'response_format' must be an object, not " + kind_of(format) + ".", "response_format");
  }
  const auto type = string_field(format, "type", "response_format.");
  if (!type) return std::unexpected(type.error());
  if (!*type || **type == "text") return {};
  if (**type == "json_object") {
    if (const Json* schema = find_field(format, "schema"))
      return take_schema(schema, "response_format.schema", request);
    const Json any = Json::object();
    return request.json_schema.empty() ? take_schema(&any, "response_format", request) : Result<void>{};
  }
  if (**type == "json_schema") {
    const Json* wrapper = find_field(format, "json_schema");
    const Json* schema = wrapper == nullptr ? nullptr : find_field(*wrapper, "schema");
    return take_schema(schema, "response_format.json_schema.schema", request);
  }
  return invalid("Unknown response format '" + **type + "'; use text, json_object or json_schema.",
                 "response_format.type");
}

Result<void> read_continuation(const Json& body, ChatRequest& request) {
  const Json* value = find_field(body, "continue_final_message");
  if (value == nullptr || *value == false) return {};
  if (*value == true) {
    request.continuation = COMMON_CHAT_CONTINUATION_AUTO;
  } else if (*value == "content") {
    request.continuation = COMMON_CHAT_CONTINUATION_CONTENT;
  } else if (*value == "reasoning_content") {
    request.continuation = COMMON_CHAT_CONTINUATION_REASONING;
  } else {
    return invalid("'continue_final_message' must be true, false, 'content' or 'reasoning_content'.",
                   "continue_final_message");
  }
  return {};
}

Result<void> read_budget(const Json& body, ChatRequest& request) {
  for (const char* key : {"reasoning_budget_tokens", "thinking_budget_tokens"}) {
    const Json* value = find_field(body, key);
    if (value == nullptr) continue;
    if (!value->is_number_integer() || *value < -1 || *value > std::numeric_limits<int>::max()) {
      return invalid(std::string("'") + key + "' must be a count of tokens, or -1 for no limit.", key);
    }
    request.reasoning_budget_tokens = value->get<int>();
    break;
  }
  const auto message = string_field(body, "reasoning_budget_message");
  if (!message) return std::unexpected(message.error());
  request.reasoning_budget_message = *message;
  return {};
}

Result<void> read_template_kwargs(const Json& body, ChatRequest& request) {
  const Json* kwargs = find_field(body, "chat_template_kwargs");
  if (kwargs == nullptr) return {};
  const std::string param = "chat_template_kwargs";
  if (!kwargs->is_object()) return invalid("'" + param + "' must be an object, not " + kind_of(*kwargs) + ".", param);
  if (auto fits = check_depth(*kwargs, param); !fits) return fits;
  const auto thinking = bool_field(*kwargs, "enable_thinking", param + ".");
  if (!thinking) return std::unexpected(thinking.error());
  if (*thinking) request.enable_thinking = *thinking;
  for (const auto& [key, value] : kwargs->items()) {
    if (key != "enable_thinking") request.template_kwargs[key] = to_text(value);
  }
  return {};
}

Result<void> read_tools(const Json& body, ChatRequest& request) {
  if (const Json* tools = find_field(body, "tools")) {
    if (!tools->is_array()) return invalid("'tools' must be an array, not " + kind_of(*tools) + ".", "tools");
    std::uint64_t cost = 0;
    for (std::size_t i = 0; i < tools->size(); ++i) {
      auto tool = read_tool((*tools)[i], "tools[" + std::to_string(i) + "]", cost);
      if (!tool) return std::unexpected(tool.error());
      request.tools.push_back(*std::move(tool));
    }
  }
  const auto parallel = bool_field(body, "parallel_tool_calls");
  if (!parallel) return std::unexpected(parallel.error());
  request.parallel_tool_calls = *parallel;
  return read_tool_choice(body, request);
}

Result<void> read_output_format(const Json& body, ChatRequest& request) {
  if (const Json* schema = find_field(body, "json_schema")) {
    if (auto ok = take_schema(schema, "json_schema", request); !ok) return ok;
  }
  if (const Json* format = find_field(body, "response_format")) {
    if (auto ok = read_response_format(*format, request); !ok) return ok;
  }
  const auto grammar = string_field(body, "grammar");
  if (!grammar) return std::unexpected(grammar.error());
  request.grammar = grammar->value_or("");
  if (request.grammar.empty()) return {};
  if (!request.json_schema.empty()) {
    return invalid("Use either 'grammar' or '" + request.schema_param + "', not both.", "grammar");
  }
  if (!request.tools.empty() && request.tool_choice != COMMON_CHAT_TOOL_CHOICE_NONE) {
    return invalid("'grammar' cannot be used together with tools; set 'tool_choice' to 'none'.", "grammar");
  }
  return {};
}

Result<void> read_reasoning(const Json& body, ChatRequest& request) {
  const auto thinking = bool_field(body, "enable_thinking");
  if (!thinking) return std::unexpected(thinking.error());
  request.enable_thinking = *thinking;
  if (auto ok = read_template_kwargs(body, request); !ok) return ok;
  const auto effort = string_field(body, "reasoning_effort");
  if (!effort) return std::unexpected(effort.error());
  request.reasoning_effort = effort->value_or("");
  const auto format = string_field(body, "reasoning_format");
  if (!format) return std::unexpected(format.error());
  if (*format) {
    for (const auto known : {COMMON_REASONING_FORMAT_NONE, COMMON_REASONING_FORMAT_AUTO,
                             COMMON_REASONING_FORMAT_DEEPSEEK, COMMON_REASONING_FORMAT_DEEPSEEK_LEGACY}) {
      if (**format == common_reasoning_format_name(known)) request.reasoning_format = known;
    }
    if (!request.reasoning_format) {
      return invalid("Unknown reasoning format '" + **format + "'; use none, auto, deepseek or deepseek-legacy.",
                     "reasoning_format");
    }
  }
  return read_budget(body, request);
}

}  // namespace

Result<ChatRequest> read_chat_request(const Json& body) {
  if (!body.is_object()) return invalid("The request body must be a JSON object.");
  ChatRequest request;
  auto messages = read_messages(body);
  if (!messages) return std::unexpected(messages.error());
  request.messages = *std::move(messages);
  for (const auto read : {read_tools, read_output_format, read_reasoning, read_continuation}) {
    if (auto ok = read(body, request); !ok) return std::unexpected(ok.error());
  }
  const auto add_prompt = bool_field(body, "add_generation_prompt");
  if (!add_prompt) return std::unexpected(add_prompt.error());
  request.add_generation_prompt = *add_prompt;
  return request;
}

}  // namespace coppice::chat
