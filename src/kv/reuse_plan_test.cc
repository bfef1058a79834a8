#include "kv/reuse_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace coppice::kv {
namespace {

const SeqId own{0}, donor{1}, other{2}, third{3};

ReuseQuery query(TokenPos prompt, TokenPos held, TokenPos common) {
  ReuseQuery q;
  q.prompt_length = prompt;
  q.own = Holder{own, held, common};
  q.can_resume = [](SeqId, TokenPos length, TokenPos at) { return at <= length; };
  return q;
}
ReuseQuery with_donor(ReuseQuery q, TokenPos held, TokenPos common, TokenPos prefix) {
  q.named = ReuseQuery::Named{.holder = Holder{donor, held, common}, .prefix = prefix};
  return q;
}

TEST(ReusePlan, A4_UsesTheCommonPartOfTheOwnSequence) {
  const ReusePlan p = plan_reuse(query(100, 80, 60));
  EXPECT_EQ(p.from, own);
  EXPECT_EQ(p.reused, 60);
  EXPECT_EQ(p.source, Source::slot);
}

TEST(ReusePlan, A7_DonorPrefixBeatsAShorterOwnOne) {
  const ReusePlan p = plan_reuse(with_donor(query(100, 80, 10), 70, 70, 50));
  EXPECT_EQ(p.from, donor);
  EXPECT_EQ(p.reused, 50);
  EXPECT_EQ(p.source, Source::donor);
}

TEST(ReusePlan, A7_AtLeastOneTokenIsEvaluated) {
  EXPECT_EQ(plan_reuse(query(100, 100, 100)).reused, 99);
  EXPECT_EQ(plan_reuse(with_donor(query(100, 0, 0), 100, 100, 100)).reused, 99);
  EXPECT_EQ(plan_reuse(query(1, 1, 1)).reused, 0);
  EXPECT_EQ(plan_reuse(query(1, 1, 1)).from, std::nullopt);
}

TEST(ReusePlan, A8_LongerOwnPrefixIsKept) {
  const ReusePlan p = plan_reuse(with_donor(query(100, 90, 90), 70, 70, 50));
  EXPECT_EQ(p.from, own);
  EXPECT_EQ(p.reused, 90);
}

TEST(ReusePlan, A9_EmptyDonorFallsBackToTheOwnSequence) {
  EXPECT_EQ(plan_reuse(with_donor(query(100, 80, 60), 0, 0, 50)).reused, 60);
  ReuseQuery gone = query(100, 80, 60);
  gone.named = ReuseQuery::Named{.holder = std::nullopt, .prefix = 50};
  EXPECT_EQ(plan_reuse(gone).reused, 60);
}

TEST(ReusePlan, A10_OnlyTheCommonPartOfADonorIsShared) {
  for (TokenPos common : {0, 1, 49}) EXPECT_EQ(plan_reuse(with_donor(query(100, 0, 0), 70, common, 50)).reused, common);
}

TEST(ReusePlan, A12_PoolIsASourceOfItsOwn) {
  ReuseQuery named = with_donor(query(100, 0, 0), 70, 70, 70);
  named.named->is_pool = true;
  EXPECT_EQ(plan_reuse(named).source, Source::pool);
  ReuseQuery found = query(100, 0, 0);
  found.others = {{Holder{other, 70, 70}, true}};
  EXPECT_EQ(plan_reuse(found).source, Source::pool);
}

TEST(ReusePlan, A5_DisabledReusesNothing) {
  ReuseQuery q = with_donor(query(100, 80, 60), 70, 70, 50);
  q.cache_prompt = false;
  EXPECT_EQ(plan_reuse(q).reused, 0);
  EXPECT_EQ(plan_reuse(q).source, Source::none);
}

TEST(ReusePlan, B15_LongestPrefixOfAnyoneIsTaken) {
  ReuseQuery q = with_donor(query(100, 80, 10), 70, 20, 50);
  q.others = {{Holder{other, 60, 60}}, {Holder{third, 95, 95}}};
  const ReusePlan p = plan_reuse(q);
  EXPECT_EQ(p.from, third);
  EXPECT_EQ(p.reused, 95);
  EXPECT_EQ(p.source, Source::donor);
}

TEST(ReusePlan, B15_OfEqualOnesTheOwnThenTheNamedThenTheFirst) {
  ReuseQuery q = with_donor(query(100, 50, 50), 50, 50, 50);
  q.others = {{Holder{other, 50, 50}}, {Holder{third, 50, 50}}};
  EXPECT_EQ(plan_reuse(q).from, own);
  q.own.reset();
  EXPECT_EQ(plan_reuse(q).from, donor);
  q.named.reset();
  EXPECT_EQ(plan_reuse(q).from, other);
}

TEST(ReusePlan, A14_SaysNotRewindable) {
  ReuseQuery q = query(100, 80, 60);
  q.can_resume = [](SeqId, TokenPos length, TokenPos at) { return at == length; };
  EXPECT_TRUE(plan_reuse(q).not_rewindable);
  EXPECT_EQ(plan_reuse(q).reused, 0);
  q.others = {{Holder{other, 40, 40}}};  // a shorter one that ends where it can be gone on from
  EXPECT_EQ(plan_reuse(q).from, other);
  EXPECT_TRUE(plan_reuse(q).not_rewindable);
  q.own = Holder{own, 60, 60};
  EXPECT_FALSE(plan_reuse(q).not_rewindable);
  EXPECT_EQ(plan_reuse(q).reused, 60);
}

RC_GTEST_PROP(ReusePlan, B15_TakesTheLongestThatAnyoneHasAndNeverMore, ()) {
  const auto holder = [](SeqId seq) {
    const int held = *rc::gen::inRange(0, 50);
    return Holder{seq, held, *rc::gen::inRange(0, held + 1)};
  };
  const auto prompt = *rc::gen::inRange(1, 50);
  ReuseQuery q = query(prompt, 0, 0);
  TokenPos longest = 0;
  const auto offer = [&](const Holder& h, TokenPos limit) {
    longest = std::max(longest, std::min({h.common, limit, prompt - 1}));
    return h;
  };
  q.own.reset();
  if (*rc::gen::arbitrary<bool>()) q.own = offer(holder(own), prompt);
  if (*rc::gen::arbitrary<bool>()) {
    const auto prefix = *rc::gen::inRange(0, 50);
    q.named = ReuseQuery::Named{.holder = offer(holder(donor), prefix), .prefix = prefix};
  }
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) q.others.push_back({offer(holder(SeqId{10 + i}), prompt)});
  const ReusePlan p = plan_reuse(q);
  RC_ASSERT(p.reused == longest);
  RC_ASSERT(p.reused < q.prompt_length);
  RC_ASSERT(p.from.has_value() == (p.reused > 0));
  RC_ASSERT(!p.not_rewindable);
}

}  // namespace
}  // namespace coppice::kv
