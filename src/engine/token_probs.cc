#include "engine/token_probs.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace coppice::engine {
namespace {

bool is_better(const TokenProb& a, const TokenProb& b) {
  return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
}

}  // namespace

TokenProbs log_softmax(std::span<const float> logits, Token chosen, int n_top) {
  assert(chosen >= 0 && static_cast<std::size_t>(chosen) < logits.size());
  const float highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - highest);
  const auto log_sum = static_cast<float>(std::log(sum));
  // In this order, so that the sum is not lost beside a huge logit.
  const auto log_prob = [&](float logit) { return (logit - highest) - log_sum; };

  TokenProbs result{.chosen = log_prob(logits[static_cast<std::size_t>(chosen)]), .top = {}};
  if (n_top <= 0) return result;
  // A heap of the best so far, its worst at the front: most tokens are turned away by one comparison.
  const auto n = std::min(static_cast<std::size_t>(n_top), logits.size());
  result.top.reserve(n);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const TokenProb candidate{static_cast<Token>(i), log_prob(logits[i])};
    if (result.top.size() < n) {
      result.top.push_back(candidate);
      std::ranges::push_heap(result.top, is_better);
    } else if (is_better(candidate, result.top.front())) {
      std::ranges::pop_heap(result.top, is_better);
      result.top.back() = candidate;
      std::ranges::push_heap(result.top, is_better);
    }
  }
  std::ranges::sort_heap(result.top, is_better);
  return result;
}

std::vector<TokenProb> best(std::vector<TokenProb> candidates, int n_top) {
  const auto n = std::min(candidates.size(), static_cast<std::size_t>(std::max(n_top, 0)));
  std::ranges::partial_sort(candidates, candidates.begin() + static_cast<std::ptrdiff_t>(n), is_better);
  candidates.resize(n);
  return candidates;
}

}  // namespace coppice::engine
