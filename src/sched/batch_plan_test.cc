#include "sched/batch_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace coppice::sched {
namespace {

std::vector<TokenPos> share(std::vector<TokenPos> remaining, TokenPos budget) {
  std::vector<PrefillNeed> needs;
  for (TokenPos r : remaining) needs.push_back({r, r});
  return share_prefill(needs, budget);
}

TEST(BatchPlan, OneRequestGetsAll) { EXPECT_EQ(share({1000}, 512), std::vector<TokenPos>{512}); }

TEST(BatchPlan, ShortTurnIsNotStuckBehindALongPrompt) {
  EXPECT_EQ(share({100000, 50}, 512), (std::vector<TokenPos>{462, 50}));
}

TEST(BatchPlan, LongPromptIsNotStarvedByShortOnes) { EXPECT_EQ(share({100000, 300, 300}, 512)[0], 256); }

TEST(BatchPlan, B16_WhoComputesWhatOthersWaitForIsNotStuckEither) {
  const std::vector<PrefillNeed> needs{{100000, 100000}, {50000, 40}, {300, 300}};
  EXPECT_EQ(share_prefill(needs, 512), (std::vector<TokenPos>{472, 40, 0}));
}

TEST(BatchPlan, NoBudgetNoShare) { EXPECT_EQ(share({5, 5}, 0), (std::vector<TokenPos>{0, 0})); }

RC_GTEST_PROP(BatchPlan, SpendsExactlyWhatIsNeededAndAllowed, ()) {
  const auto remaining = *rc::gen::container<std::vector<TokenPos>>(rc::gen::inRange(1, 1000));
  const TokenPos budget = *rc::gen::inRange(0, 1000);
  const auto shares = share(remaining, budget);
  const long total = std::accumulate(remaining.begin(), remaining.end(), 0L);
  RC_ASSERT(std::accumulate(shares.begin(), shares.end(), 0L) == std::min<long>(total, budget));
  for (std::size_t i = 0; i < shares.size(); ++i) RC_ASSERT(shares[i] >= 0 && shares[i] <= remaining[i]);
  if (!shares.empty() && budget >= 2) RC_ASSERT(shares[0] >= std::min(remaining[0], budget / 2));
}

}  // namespace
}  // namespace coppice::sched
