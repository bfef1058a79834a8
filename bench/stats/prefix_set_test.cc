#include "stats/prefix_set.h"

#include <gtest/gtest.h>

namespace coppice::bench {
namespace {

constexpr Vocabulary kHundredTokens{100, 200, 7};

TEST(PrefixSet, KnowsPromptsAndAllOfAnAnswerButItsLastToken) {
  PrefixSet known;
  EXPECT_EQ(known.add({1, 2, 3}, 7, 3), 3U);
  EXPECT_EQ(known.add({1, 2, 3, 7, 7, 7, 4}, 7, 1), 2U);
  EXPECT_EQ(known.add({1, 2, 9}, 7, 1), 1U);
}

TEST(PrefixSet, ComputesAtLeastOneToken) {
  PrefixSet known;
  EXPECT_EQ(known.add({1, 2, 3}, 7, 1), 3U);
  EXPECT_EQ(known.add({1, 2, 3}, 7, 1), 1U);
  EXPECT_EQ(known.add({1, 2}, 7, 1), 1U);
}

TEST(PrefixSet, ATokenCountsOnlyBehindItsOwnPrefix) {
  PrefixSet known;
  EXPECT_EQ(known.add({1, 2, 3}, 7, 1), 3U);
  EXPECT_EQ(known.add({2, 3}, 7, 1), 2U);
  EXPECT_EQ(known.add({9, 2, 3}, 7, 1), 3U);
}

TEST(Tokens, RunsAreReproducibleAndUnlike) {
  const Tokens a = run_of(kHundredTokens, 1, 50);
  EXPECT_EQ(a, run_of(kHundredTokens, 1, 50));
  EXPECT_NE(a, run_of(kHundredTokens, 2, 50));
  for (const std::int32_t token : a) {
    EXPECT_GE(token, 100);
    EXPECT_LT(token, 200);
  }
  EXPECT_NE(mix(1, 2), mix(2, 1));
}

}  // namespace
}  // namespace coppice::bench
