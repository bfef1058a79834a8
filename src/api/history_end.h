// Where a chat's history ends in its prompt: before the generation prompt, the text that makes the model answer. What
// stands before begins the prompt of every later turn; of the generation prompt that need not be so ("<think>" is often
// left out of the history), nor of the answer. Models whose state cannot be cut keep theirs there (spec B21).
// Pure; any thread.
#pragma once

#include <string_view>

#include "base/ids.h"
#include "engine/tokenizer.h"

namespace coppice::api {

// In tokens; 0 if it is unknown: there is no generation prompt, or the prompt's tokens do not end in it.
TokenPos history_tokens(const Tokens& prompt, std::string_view generation_prompt, const engine::Tokenizer& tokenizer);

}  // namespace coppice::api
