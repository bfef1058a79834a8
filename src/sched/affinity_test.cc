// Slot choice and session affinity through the whole scheduler (spec A1-A6). The pure rule: kv/slot_choice_test.cc.
#include <gtest/gtest.h>

#include "sched/test_world.h"

namespace coppice::sched {
namespace {

Placement session(const std::string& name) { return {.session = name}; }

TEST(Affinity, A1_A2_ThreeSessionsReturnToTheirSlotsAndComputeOnlyWhatIsNew) {
  World world({.n_cells = 4096, .n_seqs = 3}, {.n_slots = 3});
  const Tokens system = tokens_of(1, 5);  // shared by all, but too little of the prompt for the similarity rule
  std::vector<Tokens> prompts;
  std::vector<SlotId> slots;
  for (int s = 0; s < 3; ++s) {
    prompts.push_back(system + tokens_of(10 + s, 75));
    slots.push_back(world.ask(prompts.back(), session("s" + std::to_string(s))).slot);
  }
  EXPECT_EQ(std::set<SlotId>(slots.begin(), slots.end()).size(), 3U);
  for (int turn = 0; turn < 5; ++turn) {
    for (int s = 2; s >= 0; --s) {
      const auto i = static_cast<std::size_t>(s);
      const Tokens more = tokens_of(100 + 10 * turn + s, 5);
      const auto before = static_cast<TokenPos>(prompts[i].size());
      prompts[i] = world.next_turn(prompts[i], 4, more);
      const Report report = world.ask(prompts[i], session("s" + std::to_string(s)));
      EXPECT_EQ(report.slot, slots[i]);
      // All but the last generated token, which was never evaluated, is held already.
      EXPECT_EQ(report.reused_slot, before + 3);
      EXPECT_EQ(report.computed, 6);
      EXPECT_EQ(report.reason, kv::MissReason::none);
    }
  }
}

TEST(Affinity, A2_SlotServesOneSession) {
  World world({.n_cells = 512, .n_seqs = 1}, {.n_slots = 1});
  world.ask(tokens_of(1, 10), session("a"));
  world.ask(tokens_of(2, 10), session("b"));
  EXPECT_EQ(world.scheduler.snapshot().slots[0].session, "b");
}

TEST(Affinity, A3_RequestsWithoutSessionNeitherReadNorWriteTheMap) {
  World world({.n_cells = 4096, .n_seqs = 2}, {.n_slots = 2});
  const SlotId slot = world.ask(tokens_of(1, 20), session("a")).slot;
  // Takes over a's slot by similarity, as llama-server would; the map still names it for "a".
  EXPECT_EQ(world.ask(tokens_of(1, 20) + tokens_of(2, 5)).slot, slot);
  EXPECT_EQ(world.scheduler.snapshot().slots[static_cast<std::size_t>(slot.value)].session, "a");
  EXPECT_EQ(world.ask(tokens_of(3, 20), session("a")).slot, slot);
}

TEST(Affinity, A3_UnusedServerFillsItsHighestSlotFirst) {
  World world({.n_cells = 4096, .n_seqs = 4}, {.n_slots = 4});
  for (int expected : {3, 2, 1, 0, 3}) {
    EXPECT_EQ(world.ask(tokens_of(expected + 50 * static_cast<int>(world.last_id), 20)).slot, SlotId{expected});
  }
}

TEST(Affinity, A4_WrongSessionKeyCostsSpeedNotCorrectness) {
  World world({.n_cells = 4096, .n_seqs = 2}, {.n_slots = 2});
  world.ask(tokens_of(1, 30), session("a"));
  const Report report = world.ask(tokens_of(2, 30), session("a"));  // ask() checks the answer
  EXPECT_EQ(report.reused(), 0);
  EXPECT_EQ(report.reason, kv::MissReason::diverged);
  EXPECT_EQ(report.diverged_at, 0);
}

TEST(Affinity, A5_CachePromptFalseRecomputesEverythingAndLeavesNoTrace) {
  World world({.n_cells = 4096, .n_seqs = 2}, {.n_slots = 1});
  world.ask(tokens_of(1, 30));
  const Report report = world.ask(tokens_of(1, 30), {.cache_prompt = false});
  EXPECT_EQ(report.computed, 30);
  EXPECT_EQ(report.reason, kv::MissReason::disabled);
  EXPECT_EQ(world.runner.used(), 33);  // the first request's, and nothing else
  EXPECT_EQ(world.ask(tokens_of(1, 30), {.cache_prompt = false}).computed, 30);
}

TEST(Affinity, A6_ParallelRequestOfASessionStartsFromTheBusySlot) {
  World world({.n_cells = 4096, .n_seqs = 2, .n_batch = 16}, {.n_slots = 2});
  const Tokens base = tokens_of(1, 100);
  const auto first = world.submit(base, session("a"), 50);
  for (int i = 0; i < 10; ++i) world.scheduler.step();  // its prompt is computed, it decodes
  EXPECT_FALSE(first->ended());
  const auto second = world.submit(base + tokens_of(2, 10), session("a"));
  world.run();
  EXPECT_EQ(second->report().reused_donor, 100);
  EXPECT_EQ(second->report().computed, 10);
  EXPECT_NE(second->report().slot, first->report().slot);
  EXPECT_EQ(second->text, world.right_text(base + tokens_of(2, 10), 4));
  EXPECT_EQ(first->text, world.right_text(base, 50));
}

TEST(Affinity, A6_WaitsForWhatTheBusySlotIsComputing) {
  World world({.n_cells = 4096, .n_seqs = 2, .n_batch = 16}, {.n_slots = 2});
  const Tokens base = tokens_of(1, 100);
  world.submit(base, session("a"));
  for (int i = 0; i < 3; ++i) world.scheduler.step();  // 48 of 100 tokens
  const auto second = world.submit(base, session("a"));
  world.run();
  EXPECT_EQ(second->report().reused_donor, 99);
  EXPECT_TRUE(second->report().coalesced);
}

TEST(Affinity, B24_NamespacesNeverShare) {
  World world({.n_cells = 4096, .n_seqs = 2}, {.n_slots = 2});
  const Tokens prompt = tokens_of(1, 30);
  const SlotId slot = world.ask(prompt, {.session = "a", .ns = NamespaceId{1}}).slot;
  EXPECT_EQ(world.ask(prompt, {.id_slot = slot, .session = "a", .ns = NamespaceId{2}}).computed, 30);
  world.ask(prompt, {.id_slot = slot, .ns = NamespaceId{1}});
  const Report donor = world.ask(prompt, {.id_slot = SlotId{1 - slot.value},
                                          .shared_pool_slot = slot,
                                          .shared_prefix_n_tokens = 30,
                                          .ns = NamespaceId{2}});
  EXPECT_EQ(donor.reused(), 0);
}

TEST(Affinity, A1_ExplicitBusySlotIsWaitedForWhileOthersPass) {
  World world({.n_cells = 4096, .n_seqs = 2}, {.n_slots = 2});
  const auto first = world.submit(tokens_of(1, 10), {.id_slot = SlotId{0}}, 30);
  world.scheduler.step();
  const auto waiting = world.submit(tokens_of(2, 10), {.id_slot = SlotId{0}});
  const auto other = world.submit(tokens_of(3, 10));
  for (int i = 0; i < 8; ++i) world.scheduler.step();
  EXPECT_TRUE(other->ended());
  EXPECT_FALSE(waiting->ended());
  world.run();
  EXPECT_EQ(waiting->report().slot, SlotId{0});
}

}  // namespace
}  // namespace coppice::sched
