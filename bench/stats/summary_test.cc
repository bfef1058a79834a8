#include "stats/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace coppice::bench {
namespace {

TEST(Summary, OfNothingSaysSo) {
  EXPECT_EQ(summarize({}).n, 0U);
  EXPECT_TRUE(std::isnan(percentile({}, 0.5)));
}

TEST(Summary, IsIndependentOfOrder) {
  const Summary s = summarize(std::vector<double>{5, 1, 3});
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.max, 5);
  EXPECT_EQ(s.n, 3U);
}

TEST(Summary, PercentilesLieBetweenNeighbours) {
  const std::vector<double> values = {0, 10, 20, 30};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 0);
  EXPECT_DOUBLE_EQ(percentile(values, 0.5), 15);
  EXPECT_DOUBLE_EQ(percentile(values, 0.95), 28.5);
  EXPECT_DOUBLE_EQ(percentile(values, 2), 30);
}

}  // namespace
}  // namespace coppice::bench
