#include "kv/reuse_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace coppice::kv {
namespace {

const SeqId own{0}, donor{1}, other{2};

ReuseQuery query(TokenPos prompt, TokenPos held, TokenPos common) {
  ReuseQuery q;
  q.prompt_length = prompt;
  q.own = {own, held, common};
  q.can_resume = [](SeqId, TokenPos length, TokenPos at) { return at <= length; };
  q.can_fold = true;
  return q;
}
ReuseQuery with_pool(ReuseQuery q, TokenPos held, TokenPos common, TokenPos prefix) {
  q.pool = Holder{donor, held, common};
  q.pool_prefix = prefix;
  return q;
}

TEST(ReusePlan, A4_KeepsTheCommonPartOfTheOwnSlot) {
  const ReusePlan p = plan_reuse(query(100, 80, 60));
  EXPECT_EQ(p.keep, 60);
  EXPECT_EQ(p.source, Source::slot);
  EXPECT_EQ(p.donor, std::nullopt);
}

TEST(ReusePlan, A7_DonorPrefixReplacesAShorterOwnOne) {
  const ReusePlan p = plan_reuse(with_pool(query(100, 80, 10), 70, 70, 50));
  EXPECT_EQ(p.share, 50);
  EXPECT_EQ(p.keep, 0);
  EXPECT_EQ(p.donor, donor);
  EXPECT_EQ(p.source, Source::donor);
}

TEST(ReusePlan, A7_AtLeastOneTokenIsEvaluated) {
  EXPECT_EQ(plan_reuse(query(100, 100, 100)).keep, 99);
  EXPECT_EQ(plan_reuse(with_pool(query(100, 0, 0), 100, 100, 100)).share, 99);
  EXPECT_EQ(plan_reuse(query(1, 1, 1)).reused(), 0);
}

TEST(ReusePlan, A8_LongerOwnPrefixIsKeptAndItsBeginningFolded) {
  const ReusePlan p = plan_reuse(with_pool(query(100, 90, 90), 70, 70, 50));
  EXPECT_EQ(p.keep, 90);
  EXPECT_EQ(p.share, 50);
  EXPECT_EQ(p.source, Source::slot);
}

TEST(ReusePlan, A8_NoFoldWhereTheMemoryCannot) {
  ReuseQuery q = with_pool(query(100, 90, 90), 70, 70, 50);
  q.can_fold = false;
  const ReusePlan p = plan_reuse(q);
  EXPECT_EQ(p.keep, 90);
  EXPECT_EQ(p.donor, std::nullopt);
}

TEST(ReusePlan, A9_EmptyDonorFallsBackToTheOwnSlot) {
  const ReusePlan p = plan_reuse(with_pool(query(100, 80, 60), 0, 0, 50));
  EXPECT_EQ(p.keep, 60);
  EXPECT_EQ(p.donor, std::nullopt);
}

TEST(ReusePlan, A10_OnlyTheCommonPartOfADonorIsShared) {
  for (TokenPos common : {0, 1, 49}) {
    const ReusePlan p = plan_reuse(with_pool(query(100, 0, 0), 70, common, 50));
    EXPECT_EQ(p.share, common);
  }
}

TEST(ReusePlan, A5_DisabledReusesNothing) {
  ReuseQuery q = with_pool(query(100, 80, 60), 70, 70, 50);
  q.cache_prompt = false;
  EXPECT_EQ(plan_reuse(q).reused(), 0);
}

TEST(ReusePlan, A6_BusySequenceOfTheSessionGivesItsPrefix) {
  ReuseQuery q = query(100, 80, 10);
  q.other = Holder{other, 95, 95};
  const ReusePlan p = plan_reuse(q);
  EXPECT_EQ(p.donor, other);
  EXPECT_EQ(p.share, 95);
}

TEST(ReusePlan, A14_SaysNotRewindable) {
  ReuseQuery q = query(100, 80, 60);
  q.can_resume = [](SeqId, TokenPos length, TokenPos at) { return at == length; };
  EXPECT_TRUE(plan_reuse(q).not_rewindable);
  q.own = {own, 60, 60};
  EXPECT_FALSE(plan_reuse(q).not_rewindable);
  EXPECT_EQ(plan_reuse(q).keep, 60);
}

RC_GTEST_PROP(ReusePlan, NeverClaimsTokensThatAreNotCommon, ()) {
  const auto holder = [](SeqId seq) {
    const int held = *rc::gen::inRange(0, 50);
    return Holder{seq, held, *rc::gen::inRange(0, held + 1)};
  };
  ReuseQuery q = query(*rc::gen::inRange(1, 50), 0, 0);
  q.own = holder(own);
  q.own.common = std::min(q.own.common, q.prompt_length);
  if (*rc::gen::arbitrary<bool>()) q.pool = holder(donor);
  if (*rc::gen::arbitrary<bool>()) q.other = holder(other);
  q.pool_prefix = *rc::gen::inRange(0, 50);
  q.can_fold = *rc::gen::arbitrary<bool>();
  const ReusePlan p = plan_reuse(q);
  RC_ASSERT(p.keep <= q.own.common);
  RC_ASSERT(p.reused() < q.prompt_length);
  RC_ASSERT(p.donor.has_value() == (p.share > 0));
  if (p.donor == donor) RC_ASSERT(p.share <= std::min(q.pool->common, q.pool_prefix));
  if (p.donor == other) RC_ASSERT(p.share <= q.other->common);
  if (p.share > p.keep) RC_ASSERT(p.keep == 0);
}

}  // namespace
}  // namespace coppice::kv
