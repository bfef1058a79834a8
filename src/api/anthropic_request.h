// An Anthropic Messages request as the Chat Completions body that the rest of the server works with. Pure functions.
//
//   system                              -> a system message before all others
//   messages, role "system" among them  -> the same messages, each in its place
//     tool_use / tool_result            -> tool_calls / a "tool" message, ids kept
//     thinking                          -> reasoning_content, and its signature as reasoning_signature
//   tools; tool_choice                  -> function tools; tool_choice, parallel_tool_calls
//   max_tokens, stop_sequences          -> max_tokens, stop
//   thinking                            -> enable_thinking, reasoning_budget_tokens
//   output_config, output_format        -> response_format, reasoning_effort
//
// Fields of the server's own (session_id, pool, ...), samplers' and unknown ones are passed on as they are.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::api {

enum class AnthropicCall : std::uint8_t {
  create,  // needs max_tokens
  count,   // generates nothing
};

// Errors: invalid_request naming the field; this version reads text only. What is left to check is checked on the
// result as on any chat. REQUIRES: `body` is an object.
Result<Json> anthropic_to_chat(const Json& body, AnthropicCall call);

}  // namespace coppice::api
