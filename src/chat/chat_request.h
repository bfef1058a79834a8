// What a Chat Completions body says of the conversation, checked and in llama-common's types. No template is involved
// yet, so this is a pure function of the body.
#pragma once

#include <chat.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::chat {

struct ChatRequest {
  std::vector<common_chat_msg> messages;  // content is always one string: block arrays are joined with newlines

  std::vector<common_chat_tool> tools;
  common_chat_tool_choice tool_choice = COMMON_CHAT_TOOL_CHOICE_AUTO;
  std::string forced_tool;  // the one tool that must be called, with tool_choice REQUIRED; or empty
  std::optional<bool> parallel_tool_calls;

  std::string json_schema;   // JSON text, or empty
  std::string schema_param;  // the field that json_schema came from
  std::string grammar;       // the client's own GBNF; never together with json_schema or usable tools

  std::map<std::string, std::string> template_kwargs;  // name -> JSON text
  std::optional<bool> enable_thinking;
  std::string reasoning_effort;
  std::optional<common_reasoning_format> reasoning_format;
  std::optional<int> reasoning_budget_tokens;
  std::optional<std::string> reasoning_budget_message;

  std::optional<bool> add_generation_prompt;
  common_chat_continuation continuation = COMMON_CHAT_CONTINUATION_NONE;
};

// Errors: invalid_request naming the field.
Result<ChatRequest> read_chat_request(const Json& body);

// Its messages alone.
Result<std::vector<common_chat_msg>> read_messages(const Json& body);

}  // namespace coppice::chat
