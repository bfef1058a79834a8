#include "kv/slot_map.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "kv/test_ids.h"

namespace coppice::kv {
namespace {

TEST(SlotMap, A2_CommitDropsTheOtherSessionOfTheSlot) {
  SlotMap map;
  map.commit({ns, "a"}, SlotId{1});
  map.commit({ns, "b"}, SlotId{1});
  EXPECT_EQ(map.slot_of({ns, "a"}), std::nullopt);
  EXPECT_EQ(map.slot_of({ns, "b"}), SlotId{1});
}

TEST(SlotMap, A2_SessionHasOneSlot) {
  SlotMap map;
  map.commit({ns, "a"}, SlotId{1});
  map.commit({ns, "a"}, SlotId{0});
  EXPECT_EQ(map.slot_of({ns, "a"}), SlotId{0});
  EXPECT_EQ(map.session_of(SlotId{1}), nullptr);
}

TEST(SlotMap, B24_SameNameInAnotherNamespaceIsAnotherSession) {
  SlotMap map;
  map.commit({ns, "a"}, SlotId{1});
  EXPECT_EQ(map.slot_of({NamespaceId{7}, "a"}), std::nullopt);
}

RC_GTEST_PROP(SlotMap, A2_OneToOneWhateverHappens, ()) {
  SlotMap map;
  const auto commits = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 8), rc::gen::inRange(0, 4)));
  for (const auto& [session, slot] : commits) {
    map.commit({ns, std::string(1, static_cast<char>('a' + session))}, SlotId{slot});
    for (int s = 0; s < 4; ++s) {
      if (const SessionKey* key = map.session_of(SlotId{s})) RC_ASSERT(map.slot_of(*key) == SlotId{s});
    }
    RC_ASSERT(map.size() <= 4U);
  }
}

}  // namespace
}  // namespace coppice::kv
