// Requests with a common prefix that arrive together: it is computed once, and the others wait for it without holding
// anything (spec B16).
#include <gtest/gtest.h>
#include <prometheus/counter.h>

#include "sched/test_world.h"

namespace coppice::sched {
namespace {

constexpr TokenPos kShared = 400;

class Coalescing : public testing::Test {
 protected:
  Coalescing() : world({.n_cells = 8192, .n_seqs = 16, .n_batch = 32}, {.n_slots = 4}) {}

  std::shared_ptr<Outcome> ask_later(const Tokens& prompt) {
    prompts.push_back(prompt);
    outcomes.push_back(world.submit(prompt));
    return outcomes.back();
  }
  void run_and_check() {
    world.run();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (!outcomes[i]->finished) continue;
      EXPECT_EQ(outcomes[i]->text, world.right_text(prompts[i], 4)) << i;
    }
  }
  TokenPos computed() const {
    TokenPos sum = 0;
    for (const auto& outcome : outcomes) {
      if (outcome->finished) sum += outcome->report().computed;
    }
    return sum;
  }

  Tokens base = tokens_of(1, kShared);
  World world;
  std::vector<Tokens> prompts;
  std::vector<std::shared_ptr<Outcome>> outcomes;
};

TEST_F(Coalescing, B16_FourColdRequestsComputeTheirBaseOnce) {
  for (int i = 0; i < 4; ++i) ask_later(base + tokens_of(2 + i, 10 * (i + 1)));
  run_and_check();
  EXPECT_EQ(computed(), kShared + 10 + 20 + 30 + 40);
  EXPECT_FALSE(outcomes[0]->report().coalesced);
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(outcomes[static_cast<std::size_t>(i)]->report().coalesced) << i;
  EXPECT_EQ(world.metrics.requests_coalesced.Value(), 3);
}

TEST_F(Coalescing, B16_WaitingHoldsNoSlotAndNoCells) {
  ask_later(base + tokens_of(2, 10));
  ask_later(base + tokens_of(3, 10));
  world.scheduler.step();
  EXPECT_EQ(world.scheduler.running(), 1U);
  EXPECT_EQ(world.runner.used(), 32);
  const auto other = ask_later(tokens_of(9, 5));  // so it is in nobody's way
  world.scheduler.step();
  EXPECT_EQ(world.scheduler.running(), 2U);
  run_and_check();
}

TEST_F(Coalescing, B16_GoesOnWhenTheCommonPointIsPassedNotWhenTheLeaderEnds) {
  const auto leader = ask_later(base + tokens_of(2, 2000));
  const auto waiting = ask_later(base + tokens_of(3, 10));
  for (int i = 0; i < kShared / 32 + 2; ++i) world.scheduler.step();
  EXPECT_EQ(world.scheduler.running(), 2U);
  while (!waiting->ended()) world.scheduler.step();
  EXPECT_FALSE(leader->ended());
  run_and_check();
  EXPECT_EQ(computed(), kShared + 2000 + 10);
}

TEST_F(Coalescing, B16_CancelledLeaderHandsOverWhatItComputed) {
  ask_later(base + tokens_of(2, 10));
  ask_later(base + tokens_of(3, 10));
  ask_later(base + tokens_of(4, 10));
  for (int i = 0; i < 5; ++i) world.scheduler.step();  // 160 tokens
  world.scheduler.cancel(RequestId{1});
  run_and_check();
  EXPECT_EQ(outcomes[1]->report().computed, kShared - 160 + 10);  // the new leader goes on from there
  EXPECT_EQ(outcomes[2]->report().computed, 10);
}

TEST_F(Coalescing, B16_ChainsOfPartialOverlaps) {
  const Tokens longer = base + tokens_of(5, 300), longest = longer + tokens_of(6, 300);
  ask_later(base + tokens_of(2, 50));
  ask_later(longer + tokens_of(3, 50));   // shares the base with the first
  ask_later(longest + tokens_of(4, 50));  // shares more with the second
  ask_later(longest + tokens_of(7, 50));  // shares everything but its end with the third
  run_and_check();
  EXPECT_EQ(computed(), kShared + 300 + 300 + 4 * 50);
}

TEST_F(Coalescing, B16_SamePromptTwiceComputesOneTokenMore) {
  ask_later(base);
  ask_later(base);
  run_and_check();
  EXPECT_EQ(computed(), kShared + 1);
  EXPECT_EQ(world.runner.used(), kShared + 3);  // equal answers are folded
}

TEST_F(Coalescing, B16_ShortOverlapsAreNotWaitedFor) {
  const Tokens head = tokens_of(1, 31);  // one less than is worth it
  ask_later(head + tokens_of(2, 500));
  ask_later(head + tokens_of(3, 5));
  world.scheduler.step();
  EXPECT_EQ(world.scheduler.running(), 2U);
  run_and_check();
  EXPECT_EQ(world.runner.used(), 31 + 503 + 8);  // computed twice, but held once
}

TEST_F(Coalescing, B16_OneThatWaitsIsNotStuckBehindAnOlderLongPrompt) {
  ask_later(tokens_of(8, 4000));
  ask_later(base + tokens_of(2, 1000));
  const auto waiting = ask_later(base + tokens_of(3, 5));
  for (int i = 0; i < 2 * kShared / 32 + 8; ++i) world.scheduler.step();  // half of every step is for the base
  EXPECT_TRUE(waiting->ended());
  run_and_check();
}

TEST_F(Coalescing, A5_RequestsThatWantNoCacheNeitherWaitNorAreWaitedFor) {
  world.submit(base, {.cache_prompt = false});
  const auto second = world.submit(base);
  const auto third = world.submit(base, {.cache_prompt = false});
  world.run();
  EXPECT_EQ(second->report().computed, kShared);
  EXPECT_EQ(third->report().computed, kShared);
}

TEST_F(Coalescing, B24_OtherNamespacesAreNotWaitedFor) {
  world.submit(base, {.ns = NamespaceId{1}});
  const auto second = world.submit(base, {.ns = NamespaceId{2}});
  world.run();
  EXPECT_EQ(second->report().computed, kShared);
}

// A state that cannot go back can be taken over only where it is: the leader stops there once.
class CoalescingMemory : public testing::TestWithParam<engine::Rewind> {};

TEST_P(CoalescingMemory, B21_OtherMemoriesShareExactlyAtTheCommonPoint) {
  World world({.n_cells = 8192, .n_seqs = 8, .n_batch = 32, .rewind = GetParam(), .window = 8}, {.n_slots = 6});
  const Tokens base = tokens_of(1, kShared);
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 3; ++i) outcomes.push_back(world.submit(base + tokens_of(2 + i, 10)));
  for (int i = 0; i < 3; ++i) outcomes.push_back(world.submit(base + tokens_of(9, 33), {.is_fork = i > 0}));
  world.run();
  TokenPos computed = 0;
  for (const auto& outcome : outcomes) computed += outcome->report().computed;
  EXPECT_EQ(computed, kShared + 3 * 10 + 33 + 2);
}

INSTANTIATE_TEST_SUITE_P(Memory, CoalescingMemory, testing::Values(engine::Rewind::window, engine::Rewind::never),
                         [](const auto& param) { return param.param == engine::Rewind::never ? "never" : "window"; });

}  // namespace
}  // namespace coppice::sched
