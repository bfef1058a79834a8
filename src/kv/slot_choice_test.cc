#include "kv/slot_choice.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace coppice::kv {
namespace {

// Shorthand for one slot: its state, tokens in common with the prompt, last use.
SlotView idle(TokenPos common, std::int64_t last_used) { return {SlotId{0}, false, false, common, last_used}; }
SlotView busy(TokenPos common, std::int64_t last_used) { return {SlotId{0}, true, false, common, last_used}; }
SlotView empty(std::int64_t last_used = -1) { return {SlotId{0}, false, true, 0, last_used}; }

struct Case {
  std::string name;
  std::vector<SlotView> slots;
  SlotWish wish;
  SlotRule rule;
  int slot = -1;  // -1: wait
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

SlotWish prompt_of(TokenPos length) { return {.prompt_length = length}; }
SlotWish with_slot(SlotWish w, int id) { return w.id_slot = SlotId{id}, w; }
SlotWish with_session(SlotWish w, int id) { return w.session_slot = SlotId{id}, w; }
SlotWish with_threshold(SlotWish w, float t) { return w.similarity_min = t, w; }

class SlotChoiceTable : public testing::TestWithParam<Case> {};

TEST_P(SlotChoiceTable, A1_A3) {
  Case c = GetParam();
  for (std::size_t i = 0; i < c.slots.size(); ++i) c.slots[i].id = SlotId{static_cast<int>(i)};
  const SlotChoice choice = choose_slot(c.slots, c.wish);
  EXPECT_EQ(choice.rule, c.rule);
  EXPECT_EQ(choice.slot ? choice.slot->value : -1, c.slot);
}

INSTANTIATE_TEST_SUITE_P(
    Rule, SlotChoiceTable,
    testing::Values(
        // Step 1: explicit
        Case{"explicit beats session and similarity",
             {idle(0, 5), idle(90, 1), idle(50, 2)},
             with_session(with_slot(prompt_of(100), 0), 2),
             SlotRule::explicit_id,
             0},
        Case{"explicit and busy waits, though others are idle",
             {busy(0, 5), idle(90, 1)},
             with_slot(prompt_of(100), 0),
             SlotRule::wait},
        // Step 2: session
        Case{"session beats a better prefix elsewhere",
             {idle(90, 5), idle(0, 1)},
             with_session(prompt_of(100), 1),
             SlotRule::session,
             1},
        Case{"session's slot is taken even when it is empty",
             {idle(90, 5), empty()},
             with_session(prompt_of(100), 1),
             SlotRule::session,
             1},
        Case{"A6: session's slot busy, similarity next",
             {idle(30, 5), busy(90, 1), idle(20, 0)},
             with_session(prompt_of(100), 1),
             SlotRule::similarity,
             0},
        Case{"A6: session's slot busy, nothing similar, least recent next",
             {idle(3, 5), busy(90, 1), idle(2, 0)},
             with_session(prompt_of(100), 1),
             SlotRule::least_recent,
             2},
        // Step 3: similarity
        Case{"largest ratio", {idle(20, 1), idle(60, 9), idle(40, 3)}, prompt_of(100), SlotRule::similarity, 1},
        Case{"first wins a tie", {idle(10, 1), idle(60, 9), idle(60, 3)}, prompt_of(100), SlotRule::similarity, 1},
        Case{"must exceed the threshold: exactly 0.10 does not",
             {idle(10, 9), idle(0, 1)},
             prompt_of(100),
             SlotRule::least_recent,
             1},
        Case{"one token more does", {idle(11, 9), idle(0, 1)}, prompt_of(100), SlotRule::similarity, 0},
        Case{"other threshold",
             {idle(50, 9), idle(0, 1)},
             with_threshold(prompt_of(100), 0.5F),
             SlotRule::least_recent,
             1},
        Case{"0 turns similarity off",
             {idle(99, 9), idle(0, 1)},
             with_threshold(prompt_of(100), 0),
             SlotRule::least_recent,
             1},
        Case{"busy slots do not count", {busy(99, 9), idle(20, 5)}, prompt_of(100), SlotRule::similarity, 1},
        Case{"empty slots do not count", {empty(), idle(20, 5)}, prompt_of(100), SlotRule::similarity, 1},
        Case{"whole prompt held", {idle(100, 1), idle(99, 9)}, prompt_of(100), SlotRule::similarity, 0},
        // Step 4: least recent
        Case{"oldest release", {idle(0, 7), idle(0, 3), idle(0, 5)}, prompt_of(100), SlotRule::least_recent, 1},
        Case{"last wins a tie: an unused server fills its highest slot first",
             {empty(), empty(), empty()},
             prompt_of(100),
             SlotRule::least_recent,
             2},
        Case{"never used is older than used", {empty(), idle(0, 3)}, prompt_of(100), SlotRule::least_recent, 0},
        Case{"busy slots are skipped", {busy(0, 1), idle(0, 9)}, prompt_of(100), SlotRule::least_recent, 1},
        Case{"all busy waits", {busy(99, 1), busy(0, 2)}, prompt_of(100), SlotRule::wait},
        Case{"no slots waits", {}, prompt_of(1), SlotRule::wait}));

// The share is computed as a float, as in llama-server: 1/3 of a prompt is "more than" the float nearest to 1/3 only if
// the division says so.
TEST(SlotChoice, A3_FloatArithmetic) {
  const std::vector<SlotView> slots{{SlotId{0}, false, false, 1, 0}, {SlotId{1}, false, true, 0, -1}};
  SlotWish wish = prompt_of(3);
  wish.similarity_min = 1.0F / 3.0F;
  EXPECT_EQ(choose_slot(slots, wish).rule, SlotRule::least_recent);
  wish.similarity_min = 0.33333F;
  EXPECT_EQ(choose_slot(slots, wish).rule, SlotRule::similarity);
}

}  // namespace
}  // namespace coppice::kv
