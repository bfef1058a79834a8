// Work that nobody waits for (spec B25): it is done once, gives way at once, and takes nothing from anybody.
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <random>

#include "sched/tiered_world.h"

namespace coppice::sched {
namespace {

constexpr TokenPos kStep = 16;

std::shared_ptr<Outcome> prepare(World& world, const Tokens& prompt, const Placement& placement = {}) {
  Request request = world.make(prompt, placement, 0);
  request.background = true;
  request.sampler = nullptr;
  return world.submit(std::move(request));
}

double computed(const World& world) {
  return world.metrics.background_tokens[static_cast<std::size_t>(obs::Prepared::computed)]->Value();
}
double count(World& world, obs::Prepared result) { return world.metrics.background(result).Value(); }
double count(World& world, obs::BackgroundDrop why) { return world.metrics.background(why).Value(); }

World small_world() {
  return World({.n_cells = 400, .n_seqs = 6, .n_batch = 64}, {.n_slots = 2, .step_tokens_max = kStep});
}

TEST(Background, B25_TheNextTurnFindsWhatWasPrepared) {
  World w = small_world();
  const Tokens first = tokens_of(1, 100);
  w.ask(first, {.session = "s"});
  // The next prompt leaves the last one after 60 tokens, and goes on with 40 others whatever is said then.
  const Tokens known = Tokens(first.begin(), first.begin() + 60) + tokens_of(2, 40);
  const auto done = prepare(w, known, {.session = "s"});
  w.run();
  ASSERT_TRUE(done->finished);
  EXPECT_EQ(done->report().computed, 40);
  EXPECT_EQ(computed(w), 40);
  EXPECT_EQ(w.runner.used(), 100 + 3 + 40);  // the common 60 cells are shared

  const Report report = w.ask(known + tokens_of(3, 7), {.session = "s"});
  EXPECT_EQ(report.computed, 7);
  EXPECT_EQ(report.reused(), 100);
  EXPECT_EQ(report.prepared, 40);
  EXPECT_EQ(report.source, kv::Source::prepared);
  EXPECT_EQ(count(w, obs::Prepared::used), 40);
  // Used once is used.
  EXPECT_EQ(w.ask(known + tokens_of(4, 7), {.session = "s"}).prepared, 0);
}

TEST(Background, B25_WhatIsHeldCostsNothing) {
  World w = small_world();
  w.ask(tokens_of(1, 100), {.session = "s"});
  const auto steps = w.metrics.decode_steps.Value();
  const auto done = prepare(w, tokens_of(1, 80), {.session = "s"});
  w.run();
  EXPECT_EQ(done->report().computed, 0);
  EXPECT_EQ(w.metrics.decode_steps.Value(), steps);
}

TEST(Background, B25_ARequestIsServedAtTheNextStep) {
  World w = small_world();
  const auto work = prepare(w, tokens_of(1, 160), {.session = "s"});
  for (int i = 0; i < 3; ++i) w.scheduler.step();
  EXPECT_EQ(computed(w), 3 * kStep);
  const auto request = w.submit(tokens_of(2, 10), {.session = "t"}, 3);
  w.scheduler.step();
  EXPECT_FALSE(request->text.empty());  // its whole prompt in the step after it came
  EXPECT_EQ(computed(w), 3 * kStep);
  while (!request->ended()) {
    w.scheduler.step();
    EXPECT_EQ(computed(w), request->ended() ? computed(w) : 3 * kStep);
  }
  w.run();
  EXPECT_EQ(request->text, w.right_text(tokens_of(2, 10), 3));
  EXPECT_EQ(w.metrics.background_preempted.Value(), 1);
  ASSERT_TRUE(work->finished);
  EXPECT_EQ(computed(w), 160);  // it went on from where it was
}

TEST(Background, B25_StepsAreAsLongAsARequestMayHaveToWait) {
  World w({.n_cells = 4000, .n_seqs = 6, .n_batch = 512}, {.n_slots = 2, .step_tokens_max = 512});
  w.runner.on_decode = [&](std::span<const engine::BatchItem> batch) {
    w.clock.advance(std::chrono::milliseconds(1) * static_cast<int>(batch.size()));
  };
  w.ask(tokens_of(1, 100));
  prepare(w, tokens_of(2, 900));
  w.scheduler.step();
  EXPECT_NEAR(computed(w), 50, 1);  // of a millisecond each, in the 50 that a step may take
}

TEST(Background, B25_ASessionThatMovesOnTakesWhatThereIs) {
  World w = small_world();
  const Tokens known = tokens_of(1, 160);
  const auto work = prepare(w, known, {.session = "s"});
  for (int i = 0; i < 3; ++i) w.scheduler.step();
  const Report report = w.ask(known + tokens_of(2, 5), {.session = "s"});
  ASSERT_TRUE(work->error);
  EXPECT_EQ(work->error->kind, ErrorKind::cancelled);
  EXPECT_EQ(report.prepared, 3 * kStep);
  EXPECT_EQ(report.computed, 165 - 3 * kStep);
  EXPECT_EQ(count(w, obs::BackgroundDrop::moved_on), 1);
  EXPECT_TRUE(w.scheduler.idle());
}

TEST(Background, B25_OfASessionTheNewestStays) {
  World w = small_world();
  const auto old = prepare(w, tokens_of(1, 100), {.session = "s"});
  const auto other = prepare(w, tokens_of(2, 50), {.session = "t"});
  w.scheduler.step();
  const auto young = prepare(w, tokens_of(1, 60) + tokens_of(3, 20), {.session = "s"});
  EXPECT_TRUE(old->error);
  w.run();
  EXPECT_TRUE(other->finished);
  EXPECT_TRUE(young->finished);
  EXPECT_EQ(computed(w), kStep + 50 + (80 - kStep));
  EXPECT_EQ(count(w, obs::BackgroundDrop::superseded), 1);
}

TEST(Background, B25_TheQueueIsBounded) {
  World w({.n_cells = 400, .n_seqs = 6}, {.n_slots = 2, .background_limit = 3});
  std::vector<std::shared_ptr<Outcome>> all;
  for (int i = 0; i < 5; ++i) all.push_back(prepare(w, tokens_of(i, 20)));
  EXPECT_TRUE(all[0]->error && all[1]->error);
  EXPECT_FALSE(all[2]->ended());
  EXPECT_EQ(w.scheduler.snapshot().queued, 0U);
  w.run();
  EXPECT_TRUE(all[2]->finished && all[3]->finished && all[4]->finished);
  EXPECT_EQ(count(w, obs::BackgroundDrop::full), 2);
}

TEST(Background, B25_NobodyLosesCellsToAGuess) {
  World w({.n_cells = 200, .n_seqs = 6}, {.n_slots = 2});
  w.ask(tokens_of(1, 150), {.session = "s"});
  const TokenPos used = w.runner.used();
  const auto work = prepare(w, tokens_of(2, 100), {.session = "t"});
  w.run();
  EXPECT_TRUE(work->error);
  EXPECT_EQ(count(w, obs::BackgroundDrop::no_room), 1);
  EXPECT_EQ(w.runner.used(), used);
  EXPECT_EQ(w.metrics.sequences_evicted.Value(), 0);
}

TEST(Background, B25_CellsThatHostMemoryHasTooMayBeTaken) {
  TieredWorld t;  // 200 cells
  const Tokens one = tokens_of(1, 150), two = tokens_of(2, 100);
  t.ask(one, {.session = "s"});
  const auto work = prepare(t.world, two, {.session = "t"});
  t.settle();
  EXPECT_TRUE(work->finished);
  EXPECT_EQ(computed(t.world), 100);
  EXPECT_EQ(t.ask(one + tokens_of(3, 5), {.session = "s"}).computed, 5);
}

TEST(Background, B25_ItGivesItsCellsToWhoeverNeedsThem) {
  World w({.n_cells = 200, .n_seqs = 6}, {.n_slots = 2});
  prepare(w, tokens_of(1, 150), {.session = "s"});
  w.run();
  EXPECT_EQ(w.ask(tokens_of(2, 150), {.session = "t"}).computed, 150);
  w.ask(tokens_of(3, 190), {.session = "t"});
  EXPECT_EQ(count(w, obs::Prepared::wasted), 150);
}

TEST(Background, B25_AnEditedHistoryWastesOnlyWhatWasPrepared) {
  World w = small_world();
  const Tokens first = tokens_of(1, 100);
  w.ask(first, {.session = "s"});
  prepare(w, Tokens(first.begin(), first.begin() + 60) + tokens_of(2, 40), {.session = "s"});
  w.run();
  const Tokens edited = Tokens(first.begin(), first.begin() + 30) + tokens_of(5, 40);
  EXPECT_EQ(w.ask(edited, {.session = "s"}).computed, 40);
  EXPECT_EQ(count(w, obs::Prepared::used), 0);
  EXPECT_EQ(w.ask(first + tokens_of(6, 3), {.session = "s"}).computed, 3);
}

// A second turn's preparation goes on from the first one's, which nobody has used yet.
TEST(Background, B25_WhatIsPreparedInTwoPartsIsUsedAsOne) {
  World w = small_world();
  const Tokens first = tokens_of(1, 60), second = first + tokens_of(2, 40);
  prepare(w, first + tokens_of(5, 10), {.session = "s"});
  w.run();
  prepare(w, second, {.session = "s"});
  w.run();
  EXPECT_EQ(computed(w), 70 + 40);
  EXPECT_EQ(w.ask(second + tokens_of(3, 7), {.session = "s"}).prepared, 100);
  EXPECT_EQ(count(w, obs::Prepared::used), 100);
}

TEST(Background, B25_KvOnDiskIsReadIntoHostMemory) {
  tier::TempFolder dir;
  const Tokens prompt = tokens_of(1, 100);
  {
    TieredWorld t(disk_in(dir.path()));
    t.ask(prompt, {.session = "one"});
    t.flush();
  }
  TieredWorld t(disk_in(dir.path()));
  EXPECT_EQ(t.tiers->stats().host.blocks, 0U);
  const auto done = prepare(t.world, prompt, {.session = "one"});
  t.settle();
  ASSERT_TRUE(done->finished);
  EXPECT_EQ(computed(t.world), 0);
  EXPECT_GT(t.tiers->stats().host.blocks, 0U);
  EXPECT_EQ(t.ask(prompt + tokens_of(2, 5), {.session = "one"}).computed, 5);
}

TEST(Background, B25_ForgettingASessionEndsItsWork) {
  World w = small_world();
  w.ask(tokens_of(1, 20), {.session = "s"});
  const auto work = prepare(w, tokens_of(2, 100), {.session = "s"});
  w.scheduler.step();
  EXPECT_TRUE(w.scheduler.forget_session({}, "s").has_value());
  EXPECT_TRUE(work->error);
  EXPECT_EQ(w.runner.used(), 0);
  w.scheduler.check_invariants();
}

TEST(Background, ACancelledOneEndsOnceAndKeepsItsKv) {
  World w = small_world();
  const auto running = prepare(w, tokens_of(1, 100));
  const auto waiting = prepare(w, tokens_of(2, 100));
  w.scheduler.step();
  w.scheduler.cancel(RequestId{1});
  w.scheduler.cancel(RequestId{2});
  EXPECT_TRUE(running->error && waiting->error);
  EXPECT_TRUE(w.scheduler.idle());
  EXPECT_EQ(w.ask(tokens_of(1, 100)).computed, 100 - kStep);
}

TEST(Background, AFailingBatchEndsItAndNothingElse) {
  World w = small_world();
  for (const auto status : {engine::DecodeStatus::failed, engine::DecodeStatus::no_cells}) {
    const auto work = prepare(w, tokens_of(1, 100), {.session = "s"});
    w.runner.fail_next_decode(status);
    w.run();
    EXPECT_TRUE(work->error);
    w.scheduler.check_invariants();
  }
  EXPECT_EQ(w.metrics.requests_failed.Value(), 0);
}

// Slots are chosen as if there were no background work (spec A1-A3).
TEST(Background, A3_SlotChoiceDoesNotSeeIt) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    const engine::FakeRunnerOptions runner{.n_cells = 20'000, .n_seqs = 100, .n_batch = 64};
    World with(runner, {.n_slots = 3}), without(runner, {.n_slots = 3});
    for (int i = 0; i < 40; ++i) {
      const Tokens prompt = tokens_of(pick(4), 10 + pick(30)) + tokens_of(10 + pick(5), pick(20));
      Placement p;
      if (pick(2) == 0) p.session = std::string(1, static_cast<char>('a' + pick(4)));
      prepare(with, prompt + tokens_of(20 + pick(5), 1 + pick(30)), p);
      for (int steps = pick(4); steps > 0; --steps) with.scheduler.step();
      ASSERT_EQ(with.ask(prompt, p, 2).slot, without.ask(prompt, p, 2).slot) << "seed " << seed << " request " << i;
    }
  }
}

// Every kind of memory: what cannot be cut goes on from a checkpoint, and ends in one.
class BackgroundMemory : public testing::TestWithParam<engine::Rewind> {};

TEST_P(BackgroundMemory, B25_TheNextTurnFindsWhatWasPrepared) {
  TieredWorld t({.n_cells = 600, .n_seqs = 6, .n_batch = 64, .rewind = GetParam(), .window = 8},
                {.n_slots = 2, .step_tokens_max = kStep, .checkpoint_tokens_min = 4});
  const Tokens first = tokens_of(1, 100);
  t.ask(first, {.session = "s", .history = 60});
  const Tokens known = Tokens(first.begin(), first.begin() + 60) + tokens_of(2, 40);
  const auto done = prepare(t.world, known, {.session = "s"});
  t.settle();
  ASSERT_TRUE(done->finished);
  EXPECT_EQ(done->report().computed, 40);
  const Report report = t.ask(known + tokens_of(3, 7), {.session = "s"});
  EXPECT_EQ(report.computed, 7);
  EXPECT_EQ(report.prepared, 40);
  // And once more from the tiers, when it is in no sequence any more.
  t.ask(tokens_of(9, 550));
  EXPECT_EQ(t.ask(known + tokens_of(4, 7), {.session = "s"}).computed, 7);
}

TEST_P(BackgroundMemory, B25_PreemptedWorkIsNotDoneTwice) {
  TieredWorld t({.n_cells = 600, .n_seqs = 6, .n_batch = 64, .rewind = GetParam(), .window = 8},
                {.n_slots = 2, .step_tokens_max = kStep, .checkpoint_tokens_min = 4});
  const auto done = prepare(t.world, tokens_of(1, 150), {.session = "s"});
  for (int i = 0; i < 4; ++i) {
    t.world.scheduler.step();
    const auto other = t.world.submit(tokens_of(10 + i, 20));
    while (!other->ended()) t.world.scheduler.step();
  }
  t.settle();
  ASSERT_TRUE(done->finished);
  EXPECT_EQ(computed(t.world), 150);
  EXPECT_EQ(t.world.metrics.background_preempted.Value(), 4);
}

INSTANTIATE_TEST_SUITE_P(Memory, BackgroundMemory,
                         testing::Values(engine::Rewind::anywhere, engine::Rewind::window, engine::Rewind::never),
                         [](const auto& param) {
                           switch (param.param) {
                             case engine::Rewind::anywhere: return "anywhere";
                             case engine::Rewind::window: return "window";
                             default: return "recurrent";
                           }
                         });

}  // namespace
}  // namespace coppice::sched
