// Token probabilities in the shapes of the three APIs. Token texts are given raw: a token may be part of a character,
// its bytes say which.
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "engine/tokenizer.h"
#include "sched/request.h"

namespace coppice::api {

struct ProbsFormat {
  const engine::Tokenizer& tokenizer;  // for the alternatives' texts
  std::int32_t n_alternatives = 0;     // how many of them to show
  bool post_sampling = false;          // native: probabilities instead of logarithms
};

// [{"id","token","bytes","logprob","top_logprobs":[...]}], or with post_sampling "prob" and "top_probs".
Json native_probs(const std::vector<sched::TokenText>& tokens, const ProbsFormat& format);

// {"content":[{"token","logprob","bytes","top_logprobs":[...]}]}
Json chat_logprobs(const std::vector<sched::TokenText>& tokens, const ProbsFormat& format);

// {"tokens","token_logprobs","top_logprobs","text_offset"}. `offset` is where the first token's text begins in the
// answer, in bytes, and is moved to the end.
Json completion_logprobs(const std::vector<sched::TokenText>& tokens, const ProbsFormat& format, std::size_t& offset);

}  // namespace coppice::api
