#include "kv/eviction.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <chrono>

namespace coppice::kv {
namespace {

using std::chrono::seconds;

Evictable sequence(int seq, TokenPos length, Duration idle) {
  return {.seq = SeqId{seq},
          .length = length,
          .exclusive = length,
          .idle = idle,
          .last_touch = 1000U - static_cast<unsigned>(seq)};
}
Evictable alive(Evictable e) { return e.session_alive = true, e; }
Evictable used(Evictable e) { return e.uses = 1, e; }
Evictable wanted(Evictable e) { return e.wanted = true, e; }
Evictable shared(Evictable e) { return e.exclusive = 0, e; }

std::optional<SeqId> victim(const std::vector<Evictable>& all, Shortage shortage = Shortage::cells) {
  return choose_victim(all, shortage, RecomputeCostPolicy());
}

TEST(Eviction, LongerIdleGoesFirst) {
  EXPECT_EQ(victim({sequence(0, 100, seconds(5)), sequence(1, 100, seconds(500))}), SeqId{1});
}

TEST(Eviction, OneShotGoesBeforeALiveSessionThatIsIdleForLonger) {
  EXPECT_EQ(victim({alive(used(sequence(0, 100, seconds(600)))), sequence(1, 100, seconds(30))}), SeqId{1});
}

TEST(Eviction, ButNotForEver) {
  EXPECT_EQ(victim({alive(used(sequence(0, 100, seconds(60000)))), sequence(1, 100, seconds(30))}), SeqId{0});
}

TEST(Eviction, LongPromptOutlivesShortOnesThatCameLater) {
  EXPECT_EQ(victim({sequence(0, 2000, seconds(120)), sequence(1, 120, seconds(10))}), SeqId{1});
}

TEST(Eviction, LongContextIsDearerPerToken) {
  EXPECT_EQ(victim({sequence(0, 100000, seconds(60)), sequence(1, 100, seconds(60))}), SeqId{1});
}

TEST(Eviction, WhenSequencesRunOutTheSmallestTailGoes) {
  Evictable tail = alive(used(sequence(0, 5000, seconds(1))));
  tail.exclusive = 3;
  EXPECT_EQ(victim({tail, sequence(1, 4000, seconds(100))}, Shortage::sequences), SeqId{0});
  EXPECT_EQ(victim({tail, sequence(1, 4000, seconds(100))}, Shortage::cells), SeqId{1});
}

TEST(Eviction, WantedOnesGoLast) {
  EXPECT_EQ(victim({wanted(sequence(0, 100, seconds(9000))), sequence(1, 100, seconds(1))}), SeqId{1});
  EXPECT_EQ(victim({wanted(sequence(0, 100, seconds(9000)))}), SeqId{0});
}

TEST(Eviction, ForCellsOnesThatFreeNoneComeLast) {
  EXPECT_EQ(victim({shared(sequence(0, 100, seconds(9000))), sequence(1, 100, seconds(1))}), SeqId{1});
  EXPECT_EQ(victim({shared(sequence(0, 100, seconds(9000))), shared(sequence(1, 100, seconds(1)))}), SeqId{0});
}

TEST(Eviction, OfEqualOnesTheLeastRecentlyTouched) {
  EXPECT_EQ(victim({sequence(0, 100, seconds(1)), sequence(1, 100, seconds(1))}), SeqId{1});
  EXPECT_EQ(victim({}), std::nullopt);
}

RC_GTEST_PROP(Eviction, VictimIsNeverWorthMoreThanAnother, ()) {
  std::vector<Evictable> all;
  for (int i = *rc::gen::inRange(1, 12); i > 0; --i) {
    Evictable e = sequence(i, *rc::gen::inRange(1, 9000), seconds(*rc::gen::inRange(0, 4000)));
    e.exclusive = *rc::gen::inRange(0, e.length + 1);
    e.uses = *rc::gen::inRange(0, 3);
    e.session_alive = *rc::gen::arbitrary<bool>();
    all.push_back(e);
  }
  const RecomputeCostPolicy policy;
  for (const Shortage shortage : {Shortage::cells, Shortage::sequences}) {
    const auto chosen = choose_victim(all, shortage, policy);
    const auto it = std::find_if(all.begin(), all.end(), [&](const Evictable& e) { return e.seq == *chosen; });
    for (const Evictable& e : all) {
      if (shortage == Shortage::cells && (e.exclusive == 0) != (it->exclusive == 0)) continue;
      RC_ASSERT(policy.worth(*it, shortage) <= policy.worth(e, shortage));
    }
  }
}

}  // namespace
}  // namespace coppice::kv
