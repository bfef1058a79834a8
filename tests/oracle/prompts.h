// The prompt that every case of the oracle evaluates, and wrong ones to compare it with.
#pragma once

#include "base/ids.h"
#include "engine/tokenizer.h"

namespace coppice::oracle {

struct Prompt {
  Tokens tokens;
  Tokens foreign;         // another conversation, at least as long
  TokenPos shared = 0;    // the prefix that cases take from elsewhere; the rest is the tail
  TokenPos block = 0;     // the controls spoil block_size tokens of the prefix from here on: the fact that is asked for
  TokenPos value = 0;     // one token inside that block, which the answer repeats
  TokenPos compared = 0;  // logits of the last so many tokens are compared: the answer

  static constexpr TokenPos block_size = 32;

  TokenPos length() const { return static_cast<TokenPos>(tokens.size()); }
};

Prompt make_prompt(const engine::Tokenizer& tokenizer);

// Prompts of one change each, which must change the logits.
Tokens with_foreign_block(const Prompt& prompt);
Tokens with_one_token_changed(const Prompt& prompt);
Tokens without_block(const Prompt& prompt);   // shorter by the block
Tokens shifted_by_one(const Prompt& prompt);  // a foreign token first, the last one of the prefix lost; same length

}  // namespace coppice::oracle
