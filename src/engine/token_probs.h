// Token probabilities from logits.
#pragma once

#include <span>
#include <vector>

#include "engine/sampler.h"

namespace coppice::engine {

struct TokenProbs {
  float chosen = 0;            // log probability of the chosen token
  std::vector<TokenProb> top;  // best first; ties in order of the token id
};

// Log-softmax over all `logits`, the i-th belonging to token i. REQUIRES: 0 <= chosen < logits.size().
TokenProbs log_softmax(std::span<const float> logits, Token chosen, int n_top);

// The `n_top` best of `candidates`, best first.
std::vector<TokenProb> best(std::vector<TokenProb> candidates, int n_top);

}  // namespace coppice::engine
