// Which of the waiting requests runs next: whose KV is held best, but nobody waits for ever.
#include <gtest/gtest.h>

#include "sched/test_world.h"

namespace coppice::sched {
namespace {

// One slot. Each of the sessions 1 to 4 has asked 100 tokens; a request of nobody's runs, so that others have to wait.
class Overtaking : public testing::Test {
 protected:
  explicit Overtaking(std::int32_t limit = 2)
      : world({.n_cells = 4000, .n_seqs = 16}, {.n_slots = 1, .overtake_limit = limit}) {
    for (Token session = 1; session <= 4; ++session) next_turn(session);
    world.run();
    world.submit(tokens_of(9, 20));
    world.scheduler.step();
  }
  std::shared_ptr<Outcome> next_turn(Token session) {
    return world.submit(tokens_of(session, 100 + 2 * ++turns), {.session = std::to_string(session)});
  }
  // In which order they end, as indices.
  std::vector<std::size_t> order_of_ends(const std::vector<std::shared_ptr<Outcome>>& outcomes) {
    std::vector<std::size_t> order;
    std::vector<bool> seen(outcomes.size());
    while (world.scheduler.step()) {
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        if (!outcomes[i]->ended() || seen[i]) continue;
        seen[i] = true;
        order.push_back(i);
      }
    }
    return order;
  }
  World world;
  int turns = 0;
};
class InOrderOfArrival : public Overtaking {
 protected:
  InOrderOfArrival() : Overtaking(0) {}
};
using Order = std::vector<std::size_t>;

TEST_F(Overtaking, AnAgentsNextStepGoesBeforeAPromptThatNobodyKnows) {
  const auto cold = world.submit(tokens_of(7, 500)), warm = next_turn(1), colder = world.submit(tokens_of(8, 900));
  EXPECT_EQ(order_of_ends({cold, warm, colder}), (Order{1, 0, 2}));
  EXPECT_EQ(warm->report().computed, 8);
}

TEST_F(Overtaking, NobodyIsOvertakenMoreOftenThanTheLimit) {
  const auto cold = world.submit(tokens_of(7, 500));
  const auto a = next_turn(1), b = next_turn(2), c = next_turn(3), d = next_turn(4);
  EXPECT_EQ(order_of_ends({cold, a, b, c, d}), (Order{1, 2, 0, 3, 4}));
}

TEST_F(Overtaking, WhatMayNotBeReusedIsNotKnown) {
  const auto uncached = world.submit(tokens_of(1, 100), {.session = "1", .cache_prompt = false}), warm = next_turn(2);
  EXPECT_EQ(order_of_ends({uncached, warm}), (Order{1, 0}));
}

TEST_F(InOrderOfArrival, NobodyIsOvertaken) {
  const auto cold = world.submit(tokens_of(7, 500)), warm = next_turn(1);
  EXPECT_EQ(order_of_ends({cold, warm}), (Order{0, 1}));
}

}  // namespace
}  // namespace coppice::sched
