// OpenAI's prompt cache diagnostics: which part of a request differs from an earlier one, so that less of its prompt
// was reused than its client hoped for. Pure functions on digests: no text of the earlier request is needed.
//
// They complete "coppice", which says what happened to the tokens; these say which field of the request did it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "sched/request.h"

namespace coppice::api {

// What a prompt is made of, as numbers. Only equality means anything, and only within one process.
struct PromptDigest {
  std::uint64_t model = 0, tools = 0, text_format = 0, reasoning_effort = 0, instructions = 0;
  std::vector<std::uint64_t> messages;  // without the instructions
  TokenPos n_tokens = 0;                // of the prompt; set once it is known
};

// REQUIRES: `chat` is a Chat Completions body; the first message is the instructions if there are any.
PromptDigest digest_of(std::string_view model, const Json& chat, bool has_instructions);

// {"type": "cache_hit"}: everything that both prompts could share was reused.
// {"type": "cache_miss", "reason", "changed", "comparison_reusable_tokens", "cache_missed_tokens"}: it was not, and
//   `reason` is the first of the parts that differ ("tools_changed", ...), `changed` names them all.
// {"type": "unavailable"}: it was not, and no part differs: the tokens are no longer held (see "coppice").
// {"type": "comparison_response_not_found"}: `compared` is null.
Json cache_diagnostics(const PromptDigest* compared, const PromptDigest& now, const sched::Report& report);

}  // namespace coppice::api
