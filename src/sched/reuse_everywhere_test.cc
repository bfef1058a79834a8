// Every request starts from the longest prefix held anywhere, and using it destroys nothing (spec B15, B17, B18).
#include <gtest/gtest.h>
#include <prometheus/counter.h>

#include <random>
#include <set>

#include "sched/test_world.h"

namespace coppice::sched {
namespace {

Placement in_slot(int slot) { return {.id_slot = SlotId{slot}}; }

class OneSlot : public testing::Test {
 protected:
  OneSlot() : world({.n_cells = 8192, .n_seqs = 8}, {.n_slots = 1}) {}
  World world;
};

TEST_F(OneSlot, B15_BranchLeavesTheOldEndParked) {
  const Tokens head = tokens_of(1, 100), x = head + tokens_of(2, 50), y = head + tokens_of(3, 50);
  world.ask(x);
  EXPECT_EQ(world.ask(y).reused(), 100);
  const Report back = world.ask(world.next_turn(x, 4, tokens_of(4, 10)));
  EXPECT_EQ(back.reused_donor, 153);  // 150 and the answer but for its last token
  EXPECT_EQ(back.computed, 11);
  EXPECT_EQ(world.ask(world.next_turn(y, 4, tokens_of(5, 10))).computed, 11);
}

TEST_F(OneSlot, B15_InterleavedConversationsComputeOnlyWhatIsNew) {
  const Tokens system = tokens_of(1, 1500);
  std::vector<Tokens> talks;
  for (int i = 0; i < 3; ++i) talks.push_back(system + tokens_of(10 + i, 400));
  for (int turn = 0; turn < 4; ++turn) {
    for (std::size_t i = 0; i < talks.size(); ++i) {
      const Report report = world.ask(talks[i]);
      const TokenPos expected = turn > 0 ? 51 : i > 0 ? 400 : 1900;
      EXPECT_EQ(report.computed, expected) << turn << ' ' << i;
      talks[i] = world.next_turn(talks[i], 4, tokens_of(100 + 10 * turn + static_cast<int>(i), 50));
    }
  }
}

TEST_F(OneSlot, B15_SamePromptAgainComputesOneToken) {
  world.ask(tokens_of(1, 100));
  EXPECT_EQ(world.ask(tokens_of(1, 100)).computed, 1);
  EXPECT_EQ(world.runner.used(), 103);  // the same answer again is the same branch
}

TEST_F(OneSlot, ParkedSequencesThatOthersCoverAreEnded) {
  const Tokens head = tokens_of(1, 100);
  world.ask(head + tokens_of(2, 50), {}, 0);
  for (int i = 0; i < 20; ++i) world.ask(head, {}, 0);  // each starts a branch that ends within another one
  EXPECT_LE(world.scheduler.residency().n_parked(), 1);
  EXPECT_EQ(world.runner.used(), 150);
}

TEST_F(OneSlot, B15_WhenSequencesRunOutTheSmallestBranchGoes) {
  const Tokens head = tokens_of(1, 100);
  world.ask(head + tokens_of(2, 500), {}, 0);
  for (int i = 0; i < 40; ++i) world.ask(head + tokens_of(10 + i, 3), {}, 0);
  EXPECT_EQ(world.ask(head + tokens_of(2, 500) + tokens_of(3, 5)).computed, 5);
}

TEST(ReuseEverywhere, B15_BusyDecodingSlotIsADonor) {
  World world({.n_cells = 8192, .n_seqs = 8, .n_batch = 64}, {.n_slots = 2});
  const Tokens base = tokens_of(1, 1500);
  const auto stream = world.submit(base + tokens_of(2, 10), {}, 200);
  for (int i = 0; i < 30; ++i) world.scheduler.step();
  const auto second = world.submit(base + tokens_of(3, 20));
  while (!second->ended()) world.scheduler.step();
  EXPECT_FALSE(stream->ended());
  EXPECT_EQ(second->report().reused_donor, 1500);
  EXPECT_EQ(second->report().computed, 20);
  world.run();
  EXPECT_EQ(stream->text, world.right_text(base + tokens_of(2, 10), 200));
}

TEST(ReuseEverywhere, B15_MoreAgentsThanSlotsAllStayWarm) {
  constexpr int kSlots = 3, kAgents = 5;
  World world({.n_cells = 8192, .n_seqs = 16}, {.n_slots = kSlots});
  std::vector<Tokens> agents;
  for (int i = 0; i < kAgents; ++i) agents.push_back(tokens_of(10 + i, 200));
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < agents.size(); ++i) {
      const Report report = world.ask(agents[i], {.session = std::to_string(i)});
      EXPECT_EQ(report.computed, round > 0 ? 21 : 200) << round << ' ' << i;
      agents[i] = world.next_turn(agents[i], 4, tokens_of(100 + 10 * round + static_cast<int>(i), 20));
    }
  }
}

TEST(ReuseEverywhere, OneShotCallsDoNotPushOutAWarmConversation) {
  for (const char* session : {"talk", ""}) {
    World world({.n_cells = 4096, .n_seqs = 64}, {.n_slots = 2});
    Tokens talk = tokens_of(session[0], 2000);
    world.ask(talk, {.session = session});
    for (int i = 0; i < 300; ++i) {
      world.clock.advance(std::chrono::milliseconds(100));
      world.ask(tokens_of(1000 + i, 120));
    }
    talk = world.next_turn(talk, 4, tokens_of(3, 10));
    EXPECT_EQ(world.ask(talk, {.session = session}).computed, 11) << session;
  }
}

TEST(ReuseEverywhere, EvictionTakesTheEndOfASequenceFirst) {
  World world({.n_cells = 1000, .n_seqs = 8}, {.n_slots = 2});
  world.ask(tokens_of(1, 600), in_slot(0), 0);
  world.ask(tokens_of(2, 450), in_slot(1), 0);  // 51 too many: a step of 64 is taken
  EXPECT_EQ(world.scheduler.snapshot().slots[0].held, 600 - 64);
  EXPECT_EQ(world.ask(tokens_of(1, 600) + tokens_of(3, 1), in_slot(0), 0).reused(), 536);
}

TEST(ReuseEverywhere, CellsThatOnlyIdleSequencesShareCanBeFreed) {
  World world({.n_cells = 1000, .n_seqs = 8}, {.n_slots = 1});
  const Tokens base = tokens_of(1, 800);
  for (int i = 0; i < 4; ++i) world.ask(base + tokens_of(2 + i, 10), {}, 0);
  EXPECT_EQ(world.ask(tokens_of(9, 990), {}, 4).computed, 990);
}

TEST(ReuseEverywhere, B18_ForksNeverOverwriteAnotherConversation) {
  World world({.n_cells = 8192, .n_seqs = 16}, {.n_slots = 4});
  Tokens talk = tokens_of(1, 1000);
  world.ask(talk, {.session = "talk"});
  std::vector<std::shared_ptr<Outcome>> answers;
  for (int i = 0; i < 4; ++i) answers.push_back(world.submit(tokens_of(2, 500), {.is_fork = i > 0}));
  world.run();
  TokenPos computed = 0;
  for (const auto& answer : answers) computed += answer->report().computed;
  EXPECT_EQ(computed, 500 + 3);
  talk = world.next_turn(talk, 4, tokens_of(3, 10));
  EXPECT_EQ(world.ask(talk, {.session = "talk"}).computed, 11);
}

TEST(ReuseEverywhere, B17_DisconnectInTheMiddleOfAPrefillAndAgain) {
  World world({.n_cells = 8192, .n_seqs = 4, .n_batch = 100}, {.n_slots = 2});
  const Tokens prompt = tokens_of(1, 6000);
  world.submit(prompt);
  for (int i = 0; i < 30; ++i) world.scheduler.step();
  world.scheduler.cancel(RequestId{1});
  world.ask(tokens_of(2, 100));  // others in between
  world.ask(tokens_of(3, 100));
  EXPECT_EQ(world.ask(prompt).computed, 3000);
}

TEST(ReuseEverywhere, DuplicatesThatCouldNotBeAvoidedAreFolded) {
  World world({.n_cells = 8192, .n_seqs = 8, .n_batch = 256}, {.n_slots = 2, .coalesce_tokens_min = 5000});
  const Tokens base = tokens_of(1, 1000);
  const auto one = world.submit(base + tokens_of(2, 10), {}, 0), two = world.submit(base + tokens_of(3, 10), {}, 0);
  world.run();
  EXPECT_EQ(one->report().computed + two->report().computed, 2020);
  EXPECT_EQ(world.runner.used(), 1020);
  EXPECT_EQ(world.metrics.cells_folded.Value(), 1000);
  EXPECT_EQ(world.ask(base + tokens_of(2, 10) + tokens_of(4, 5)).computed, 5);
}

// With room for everything, the prompt tokens computed are the different ones, and one for each request's logits:
// whatever arrives, in whatever order, is cancelled or not. The optimum is counted by a set of all prefixes.
TEST(ReuseEverywhere, B15_B16_WithRoomForEverythingNothingIsComputedTwice) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    World world({.n_cells = 200000, .n_seqs = 256, .n_batch = 32}, {.n_slots = 6, .coalesce_tokens_min = 1});
    std::set<Tokens> prefixes;
    std::vector<Tokens> known{tokens_of(1, 60), tokens_of(2, 40)};
    std::uint64_t requests = 0;
    for (int i = 0; i < 60; ++i) {
      const Tokens from = known[static_cast<std::size_t>(pick(static_cast<int>(known.size())))];
      const auto cut = 1 + pick(static_cast<int>(from.size()));
      const Tokens prompt = Tokens(from.begin(), from.begin() + cut) + tokens_of(10 + pick(500), 1 + pick(40));
      known.push_back(prompt);
      for (std::size_t n = 1; n <= prompt.size(); ++n)
        prefixes.insert(Tokens(prompt.begin(), prompt.begin() + static_cast<int>(n)));
      world.submit(prompt, {}, 0);
      ++requests;
      for (int s = pick(4); s > 0; --s) world.scheduler.step();
      if (pick(10) == 0)
        world.scheduler.cancel(RequestId{1 + static_cast<std::uint64_t>(pick(static_cast<int>(requests)))});
    }
    world.run();
    EXPECT_LE(world.runner.tokens_evaluated(), prefixes.size() + requests);
    EXPECT_LE(static_cast<std::size_t>(world.runner.used()), prefixes.size());
  }
}

}  // namespace
}  // namespace coppice::sched
