#include "engine/token_probs.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace coppice::engine {
namespace {

TEST(TokenProbs, GivesTheSoftmax) {
  const std::vector<float> logits{0, std::log(3.0F), std::log(6.0F)};  // probabilities 0.1, 0.3, 0.6
  const TokenProbs result = log_softmax(logits, 1, 2);
  EXPECT_NEAR(std::exp(result.chosen), 0.3, 1e-6);
  ASSERT_EQ(result.top.size(), 2U);
  EXPECT_EQ(result.top[0].token, 2);
  EXPECT_NEAR(std::exp(result.top[0].logprob), 0.6, 1e-6);
  EXPECT_EQ(result.top[1].token, 1);
}

TEST(TokenProbs, IsNotThrownOffByHugeLogitsOrTies) {
  const std::vector<float> logits{1e30F, 1e30F, -INFINITY};
  const TokenProbs result = log_softmax(logits, 0, 10);
  EXPECT_NEAR(std::exp(result.chosen), 0.5, 1e-6);
  ASSERT_EQ(result.top.size(), 3U) << "no more than there are";
  EXPECT_EQ(result.top[0].token, 0) << "ties in order of the id";
  EXPECT_EQ(result.top[1].token, 1);
  EXPECT_TRUE(log_softmax(logits, 0, 0).top.empty());
  EXPECT_TRUE(log_softmax(logits, 0, -5).top.empty());
}

RC_GTEST_PROP(TokenProbs, TopIsTheBeginningOfTheSortedWhole, (std::vector<std::int8_t> steps, std::uint8_t n_top)) {
  RC_PRE(!steps.empty());
  std::vector<float> logits;
  for (std::int8_t s : steps) logits.push_back(static_cast<float>(s) / 8);
  const TokenProbs all = log_softmax(logits, 0, static_cast<int>(logits.size()));
  double sum = 0;
  for (const TokenProb& p : all.top) sum += std::exp(p.logprob);
  RC_ASSERT(std::abs(sum - 1) < 1e-3);
  RC_ASSERT(std::ranges::is_sorted(all.top, std::greater{}, &TokenProb::logprob));

  const TokenProbs some = log_softmax(logits, 0, n_top);
  RC_ASSERT(some.top.size() == std::min<std::size_t>(n_top, logits.size()));
  for (std::size_t i = 0; i < some.top.size(); ++i) RC_ASSERT(some.top[i].token == all.top[i].token);
  const auto again = best(all.top, n_top);
  for (std::size_t i = 0; i < again.size(); ++i) RC_ASSERT(again[i].token == some.top[i].token);
}

}  // namespace
}  // namespace coppice::engine
