// Models whose state cannot be cut: sessions, pools, forks, eviction, restart, cancel (spec B21). Counts are exact, and
// every answer is the one that the prompt alone gives.
#include <gtest/gtest.h>

#include "sched/tiered_world.h"

namespace coppice::sched {
namespace {

constexpr TokenPos kEvery = 64;

struct Family {
  const char* name;
  engine::Rewind rewind;
  TokenPos window;
};

class CheckpointWorld : public TieredWorld {
 public:
  explicit CheckpointWorld(const Family& family, std::optional<tier::DiskOptions> disk = {}, TokenPos n_cells = 1000)
      : TieredWorld({.n_cells = n_cells, .n_seqs = 8, .n_batch = 32, .rewind = family.rewind, .window = family.window},
                    {.n_slots = 3, .checkpoint_tokens = kEvery, .checkpoint_tokens_min = 8}, std::move(disk)) {}

  void make_pool(const std::string& name, const Tokens& prompt) {
    Request request = world.make(prompt, {}, 0);
    request.make_pool = PoolSpec{.name = name};
    world.submit(std::move(request));
    settle();
  }
  // Takes every cell that nothing holds a lease on.
  void crowd_out() {
    const auto n = static_cast<int>(world.runner.info().n_cells - world.scheduler.snapshot().cells_pinned) - 8;
    ask(tokens_of(99, n), {.cache_prompt = true}, 1);
  }
};

class Checkpoints : public testing::TestWithParam<Family> {};

// The case of most agents: what a turn was rendered with behind its history is rendered otherwise in the next one.
TEST_P(Checkpoints, B21_ATurnThatLeavesTheLastOneAtItsHistoryComputesWhatIsNew) {
  CheckpointWorld t(GetParam());
  const Tokens history = tokens_of(1, 150);
  t.ask(history + tokens_of(2, 3), {.session = "one", .history = 150}, 40);
  const TokenPos used = t.world.runner.used();
  const Report report = t.ask(history + tokens_of(3, 20), {.session = "one", .history = 160});
  EXPECT_EQ(report.computed, 20);
  EXPECT_EQ(report.reused_slot, 150) << "the cells are shared, and only the state comes from the checkpoint";
  EXPECT_EQ(report.source, kv::Source::slot);
  EXPECT_EQ(t.world.runner.used(), used + 20 + 3) << "own cells only";
}

TEST_P(Checkpoints, B21_WithoutAKnownHistoryTheSamePromptComputesItsLastToken) {
  CheckpointWorld t(GetParam());
  const Tokens prompt = tokens_of(1, 100);
  t.ask(prompt, {}, 30);
  EXPECT_EQ(t.ask(prompt, {}, 30).computed, 1);
}

TEST_P(Checkpoints, B21_AForkAnywhereComputesAtMostTheTokensBetweenTwoCheckpoints) {
  CheckpointWorld t(GetParam());
  const Tokens base = tokens_of(1, 300);
  t.ask(base, {.session = "one"}, 4);
  // The last two thirds have checkpoints closely, what lies before has fewer.
  const Tokens fork = Tokens(base.begin(), base.begin() + 290) + tokens_of(2, 10);
  EXPECT_EQ(t.ask(fork).computed, 10 + (290 - 256));
}

TEST_P(Checkpoints, B21_WhatWasEvictedComesBack) {
  CheckpointWorld t(GetParam(), {}, 300);
  const Tokens one = tokens_of(1, 200);
  t.ask(one, {.session = "one"});
  t.crowd_out();
  const Tokens next = t.world.next_turn(one, 4, tokens_of(3, 5));
  const Report report = t.ask(next, {.session = "one"});
  EXPECT_EQ(report.computed, 5 + 1);
  EXPECT_EQ(report.reused_host, 203);
  EXPECT_EQ(report.reason, kv::MissReason::none);
}

TEST_P(Checkpoints, B21_SessionsAndHistoriesOutliveARestart) {
  tier::TempFolder dir;
  const Tokens history = tokens_of(1, 100);
  const Tokens prompt = history + tokens_of(2, 4);
  Tokens next;
  {
    CheckpointWorld t(GetParam(), disk_in(dir.path()));
    t.ask(prompt, {.session = "one", .history = 100});
    next = t.world.next_turn(prompt, 4, tokens_of(3, 5));
    t.flush();
  }
  {
    CheckpointWorld t(GetParam(), disk_in(dir.path()));
    EXPECT_EQ(t.ask(next, {.session = "one"}).computed, 5 + 1);
  }
  CheckpointWorld t(GetParam(), disk_in(dir.path()));
  const Report report = t.ask(history + tokens_of(4, 7), {.session = "one"});
  EXPECT_EQ(report.computed, 7);
  EXPECT_EQ(report.reused_disk, 100);
}

// N agents over one base, all of which begin when the base's maker has long gone on: P + own cells, computed once.
TEST_P(Checkpoints, A8_AgentsShareTheCellsOfABaseThatNobodyEndsAt) {
  CheckpointWorld t(GetParam());
  const Tokens base = tokens_of(1, 200);
  t.ask(base + tokens_of(2, 2), {.session = "maker", .history = 200}, 30);
  const TokenPos used = t.world.runner.used();
  std::vector<std::shared_ptr<Outcome>> agents;
  for (int i = 0; i < 3; ++i) {
    agents.push_back(
        t.world.submit(base + tokens_of(10 + i, 10), {.session = std::string(1, static_cast<char>('a' + i))}));
  }
  t.settle();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(agents[static_cast<std::size_t>(i)]->report().computed, 10);
    EXPECT_EQ(agents[static_cast<std::size_t>(i)]->text, t.world.right_text(base + tokens_of(10 + i, 10), 4));
  }
  EXPECT_EQ(t.world.runner.used(), used + 3 * (10 + 3));
}

TEST_P(Checkpoints, B21_APoolThatWasDeletedAndEvictedIsStillKnownAtItsEnd) {
  CheckpointWorld t(GetParam(), {}, 400);
  const Tokens base = tokens_of(1, 150);
  t.make_pool("base", base);
  EXPECT_EQ(t.ask(base + tokens_of(2, 9), {.pool = "base"}).computed, 9);
  EXPECT_TRUE(t.world.scheduler.drop_pool({}, "base"));
  t.crowd_out();
  EXPECT_EQ(t.ask(base + tokens_of(3, 9)).computed, 9);
}

// The restore is refused in the middle: nothing of it stays, and the request is computed.
TEST_P(Checkpoints, B21_AFailedRestoreIsComputedInstead) {
  CheckpointWorld t(GetParam(), {}, 300);
  const Tokens one = tokens_of(1, 200);
  t.ask(one, {.session = "one"}, 20);
  t.crowd_out();
  t.world.runner.refuse_next_restore();
  const Report report = t.ask(one + tokens_of(5, 5), {.session = "one"});
  EXPECT_EQ(report.reused() + report.computed, 205);
  EXPECT_EQ(report.reused_host, 0);
  EXPECT_EQ(t.tiers->stats().quarantined, 1U);
}

TEST_P(Checkpoints, B17_ARequestThatGoesAwayWhileItIsRestoredLeavesNothingHalfDone) {
  CheckpointWorld t(GetParam(), {}, 300);
  const Tokens one = tokens_of(1, 200);
  t.ask(one, {.session = "one"}, 4);
  t.crowd_out();
  const auto stream = t.world.submit(tokens_of(7, 10), {.id_slot = SlotId{0}}, 60);  // so that restoring takes steps
  t.world.scheduler.step();
  const auto gone = t.world.submit(one + tokens_of(5, 5), {.session = "one"});
  const RequestId id{t.world.last_id};
  t.clock.advance(std::chrono::seconds(1));
  t.world.scheduler.cancel(id);
  t.settle();
  EXPECT_TRUE(gone->error);
  EXPECT_EQ(stream->text, t.world.right_text(tokens_of(7, 10), 60));
  EXPECT_EQ(t.ask(one + tokens_of(6, 5), {.session = "one"}).computed, 5 + 1) << "from before its last token";
}

TEST_P(Checkpoints, A14_ExplainSaysWhatTheRequestThenDoes) {
  CheckpointWorld t(GetParam());
  const Tokens history = tokens_of(1, 150);
  t.ask(history + tokens_of(2, 3), {.session = "one", .history = 150}, 40);
  const Tokens prompt = history + tokens_of(3, 20);
  const Explanation said = t.world.scheduler.explain(prompt, {.session = "one"});
  const Report report = t.ask(prompt, {.session = "one"});
  EXPECT_EQ(said.reused, report.reused());
  EXPECT_EQ(said.computed, report.computed);
  EXPECT_EQ(said.source, report.source);
  EXPECT_EQ(said.reason, report.reason);
}

INSTANTIATE_TEST_SUITE_P(Memory, Checkpoints,
                         testing::Values(Family{"recurrent", engine::Rewind::never, 0},
                                         Family{"window", engine::Rewind::window, 10}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace coppice::sched
