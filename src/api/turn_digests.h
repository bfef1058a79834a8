// What a request said, as digests: enough to tell an earlier one from a later one, and where they part, without keeping
// a word of either. For answers to "why was my last turn's prefix not reused?" in the shapes of the clouds' APIs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace coppice::api {

struct TurnDigests {
  struct Part {
    std::array<unsigned char, 32> digest{};  // SHA-256
    std::uint32_t bytes = 0;                 // of its text, roughly

    friend bool operator==(const Part& a, const Part& b) { return a.digest == b.digest; }
  };
  Part model, system, tools;
  Part settings;               // whatever else a template may print: tool_choice, the output's schema, reasoning
  std::vector<Part> messages;  // those after the system messages at the beginning
  std::size_t n_tokens = 0;    // of the prompt
};

// `body` is a Chat Completions request after normalise_chat(), so that all dialects and spellings give the same.
TurnDigests digest_turn(const Json& body, std::size_t n_prompt_tokens);

// What has changed first, in the order in which prompts begin.
enum class TurnChange : std::uint8_t {
  none,  // the earlier request is a beginning of the later one
  model,
  system,
  tools,
  messages,
  settings,   // nothing of the above, but the prompts need not be alike
  not_found,  // there is nothing known to compare with
};

struct TurnComparison {
  TurnChange change = TurnChange::none;
  // Of the earlier prompt, before and behind the first difference. Estimates, from the lengths of the texts.
  std::int64_t common_tokens = 0, missed_tokens = 0;
};

TurnComparison compare_turns(const TurnDigests& before, const TurnDigests& now);

}  // namespace coppice::api
