// When cells run out: idle sequences go first, then the youngest request waits; nobody fails for another's size.
#include <gtest/gtest.h>
#include <prometheus/counter.h>

#include "sched/test_world.h"

namespace coppice::sched {
namespace {

TEST(Pressure, IdleSequencesAreEvictedLeastRecentlyUsedFirst) {
  World world({.n_cells = 100, .n_seqs = 3}, {.n_slots = 3});
  world.ask(tokens_of(1, 30), {.id_slot = SlotId{0}}, 0);
  world.ask(tokens_of(2, 30), {.id_slot = SlotId{1}}, 0);
  world.ask(tokens_of(3, 50), {.id_slot = SlotId{2}}, 0);
  const auto slots = world.scheduler.snapshot().slots;
  EXPECT_EQ(slots[0].held, 0);
  EXPECT_EQ(slots[1].held, 30);
  EXPECT_EQ(world.metrics.sequences_evicted.Value(), 1);
}

TEST(Pressure, DonorIsEvictedLast) {
  World world({.n_cells = 100, .n_seqs = 4}, {.n_slots = 4});
  world.ask(tokens_of(1, 30), {.id_slot = SlotId{0}}, 0);  // donor, the oldest
  world.ask(tokens_of(2, 40), {.id_slot = SlotId{1}}, 0);
  world.ask(tokens_of(1, 30) + tokens_of(4, 5),
            {.id_slot = SlotId{2}, .shared_pool_slot = SlotId{0}, .shared_prefix_n_tokens = 30}, 0);
  world.ask(tokens_of(5, 50), {.id_slot = SlotId{3}}, 0);
  EXPECT_EQ(world.scheduler.snapshot().slots[0].held, 30);
  EXPECT_EQ(world.scheduler.snapshot().slots[1].held, 0);
}

TEST(Pressure, DonorOfWaitingRequestsIsEvictedLast) {
  World world({.n_cells = 100, .n_seqs = 3}, {.n_slots = 3});
  world.ask(tokens_of(1, 30), {.id_slot = SlotId{0}}, 0);  // donor, the oldest
  world.ask(tokens_of(2, 30), {.id_slot = SlotId{1}}, 0);
  world.submit(tokens_of(3, 50), {.id_slot = SlotId{2}}, 0);
  const auto agent =
      world.submit(tokens_of(1, 30) + tokens_of(4, 5),
                   {.id_slot = SlotId{1}, .shared_pool_slot = SlotId{0}, .shared_prefix_n_tokens = 30}, 0);
  world.run();
  EXPECT_EQ(agent->report().reused_donor, 30);
}

TEST(Pressure, A8_AgentsOverOneBaseFitIntoExactlyTheirCells) {
  constexpr TokenPos kBase = 1000, kOwn = 20, kAnswer = 10;
  World world({.n_cells = kBase + 8 * (kOwn + kAnswer - 1), .n_seqs = 9, .n_batch = 64}, {.n_slots = 9});
  const Tokens base = tokens_of(1, kBase);
  world.ask(base, {.id_slot = SlotId{0}}, 0);
  std::vector<std::shared_ptr<Outcome>> agents;
  for (int i = 1; i <= 8; ++i) {
    agents.push_back(
        world.submit(base + tokens_of(10 + i, kOwn),
                     {.id_slot = SlotId{i}, .shared_pool_slot = SlotId{0}, .shared_prefix_n_tokens = kBase}, kAnswer));
  }
  world.run();
  for (const auto& agent : agents) EXPECT_EQ(agent->report().pauses, 0);
  EXPECT_EQ(world.metrics.sequences_evicted.Value(), 0);
  EXPECT_EQ(world.runner.used(), world.fake_options.n_cells);
}

TEST(Pressure, FourLongAnswersAllFinishWhereOnlyTwoFit) {
  World world({.n_cells = 128, .n_seqs = 4, .n_batch = 16}, {.n_slots = 4});
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 4; ++i) outcomes.push_back(world.submit(tokens_of(i, 20), {}, 60));
  world.run();
  int pauses = 0;
  for (int i = 0; i < 4; ++i) {
    const auto& outcome = *outcomes[static_cast<std::size_t>(i)];
    ASSERT_TRUE(outcome.finished) << i;
    EXPECT_EQ(outcome.text, world.right_text(tokens_of(i, 20), 60)) << i;
    EXPECT_EQ(outcome.report().predicted, 60);
    pauses += outcome.report().pauses;
  }
  EXPECT_GT(pauses, 0);
  EXPECT_EQ(outcomes[0]->report().pauses, 0);  // the oldest is never the one that waits
}

TEST(Pressure, AnswerThatFillsTheContextEndsWithLength) {
  World world({.n_cells = 64, .n_seqs = 2}, {.n_slots = 2});
  const auto outcome = world.submit(tokens_of(1, 20), {}, -1);
  world.run();
  EXPECT_EQ(outcome->finished->stop, StopKind::length);
  EXPECT_EQ(outcome->report().predicted, 64 - 20);
  EXPECT_EQ(outcome->text, world.right_text(tokens_of(1, 20), 44));
}

TEST(Pressure, SmallRequestsDoNotOvertakeOneThatWaitsForCells) {
  World world({.n_cells = 100, .n_seqs = 2}, {.n_slots = 2});
  const auto first = world.submit(tokens_of(1, 40), {}, 20);
  world.scheduler.step();
  const auto big = world.submit(tokens_of(2, 90), {}, 2);
  world.scheduler.step();  // it is its turn, and the cells do not suffice
  const auto small = world.submit(tokens_of(3, 5), {}, 2);
  while (!first->ended()) {
    ASSERT_TRUE(world.scheduler.step());
    EXPECT_EQ(world.scheduler.queued(), 2U);  // there is room for the small one, but it is not its turn
  }
  world.run();
  EXPECT_TRUE(big->finished);
  EXPECT_TRUE(small->finished);
}

TEST(Pressure, PrefillOfOthersDoesNotStopDecoding) {
  World world({.n_cells = 4096, .n_seqs = 2, .n_batch = 16}, {.n_slots = 2});
  const auto stream = world.submit(tokens_of(1, 4), {}, 50);
  world.scheduler.step();
  const auto long_prompt = world.submit(tokens_of(2, 2000), {}, 1);
  for (int i = 0; i < 49; ++i) world.scheduler.step();  // one token of the stream in every step
  EXPECT_TRUE(stream->finished);
  EXPECT_FALSE(long_prompt->ended());
  world.run();
}

TEST(Pressure, FailedBatchEndsItsRequestsAndNoOthers) {
  World world({}, {.n_slots = 1});
  const auto hit = world.submit(tokens_of(1, 20));
  const auto waiting = world.submit(tokens_of(1, 20));
  world.runner.fail_next_decode(engine::DecodeStatus::failed);
  world.run();
  EXPECT_EQ(hit->error->kind, ErrorKind::internal);
  EXPECT_EQ(waiting->text, world.right_text(tokens_of(1, 20), 4));
}

TEST(Pressure, BatchWithoutCellsGivesUpIdleSequencesAndGoesOn) {
  World world({.n_cells = 256, .n_seqs = 2}, {.n_slots = 2});
  world.ask(tokens_of(9, 20), {.id_slot = SlotId{0}}, 0);
  const auto outcome = world.submit(tokens_of(1, 20), {.id_slot = SlotId{1}});
  world.runner.fail_next_decode(engine::DecodeStatus::no_cells);
  world.run();
  EXPECT_EQ(outcome->text, world.right_text(tokens_of(1, 20), 4));
  EXPECT_EQ(outcome->report().pauses, 0);
  EXPECT_EQ(world.scheduler.snapshot().slots[0].held, 0);
}

TEST(Pressure, BatchWithoutCellsPausesTheYoungestWhenNothingIsIdle) {
  World world({.n_cells = 256, .n_seqs = 2}, {.n_slots = 2});
  const auto older = world.submit(tokens_of(1, 20));
  const auto younger = world.submit(tokens_of(2, 20));
  world.runner.fail_next_decode(engine::DecodeStatus::no_cells);
  world.run();
  EXPECT_EQ(older->text, world.right_text(tokens_of(1, 20), 4));
  EXPECT_EQ(younger->text, world.right_text(tokens_of(2, 20), 4));
  EXPECT_EQ(older->report().pauses, 0);
  EXPECT_EQ(younger->report().pauses, 1);
}

}  // namespace
}  // namespace coppice::sched
