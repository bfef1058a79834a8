#include "engine/fake_runner.h"

#include <gtest/gtest.h>

namespace coppice::engine {
namespace {

const SeqId a{0}, b{1};
const FakeRunnerOptions options{.n_cells = 256, .n_seqs = 3};

Token run(FakeRunner& runner, SeqId seq, const Tokens& tokens) {
  std::vector<BatchItem> batch;
  TokenPos pos = runner.length(seq);
  for (Token t : tokens) batch.push_back({t, pos++, seq, true});
  EXPECT_EQ(runner.decode(batch), DecodeStatus::ok);
  const auto sampler = runner.make_sampler();
  return runner.sample(*sampler, static_cast<std::int32_t>(batch.size()) - 1, {}).token;
}

TEST(FakeRunner, OutputIsAFunctionOfThePrompt) {
  FakeRunner runner(options);
  EXPECT_EQ(run(runner, a, {1, 2, 3}), FakeRunner::generate(options, {1, 2, 3}, 1)[0]);
}

TEST(FakeRunner, SharedPrefixGivesTheSameOutputAsOwnOne) {
  FakeRunner runner(options);
  run(runner, a, {1, 2, 3, 4});
  runner.share(a, b, 0, 3);
  EXPECT_EQ(run(runner, b, {9}), FakeRunner::generate(options, {1, 2, 3, 9}, 1)[0]);
  EXPECT_EQ(runner.used(), 5);
}

// The negative controls: a fake that could not tell these apart would test nothing.
TEST(FakeRunner, C_WrongCellsChangeTheOutput) {
  const Token right = FakeRunner::generate(options, {1, 2, 3, 9}, 1)[0];
  FakeRunner foreign(options);
  run(foreign, a, {1, 7, 3});
  foreign.share(a, b, 0, 3);
  EXPECT_NE(run(foreign, b, {9}), right);
  FakeRunner swapped(options);
  EXPECT_NE(run(swapped, a, {2, 1, 3, 9}), right);
  FakeRunner shifted(options);
  EXPECT_NE(run(shifted, a, {5, 1, 2, 3, 9}), right);
  // KV computed with another beginning in sight, then grafted behind the right one.
  FakeRunner grafted(options);
  run(grafted, a, {8, 2, 3});
  run(grafted, b, {1});
  EXPECT_TRUE(grafted.remove(a, 0, 1));
  grafted.share(b, a, 0, 1);
  EXPECT_NE(run(grafted, a, {9}), right);
}

TEST(FakeRunner, NoCellsIsReported) {
  FakeRunner runner({.n_cells = 2, .n_seqs = 1});
  const std::vector<BatchItem> batch{{1, 0, a, false}, {2, 1, a, false}, {3, 2, a, true}};
  EXPECT_EQ(runner.decode(batch), DecodeStatus::no_cells);
}

TEST(FakeRunner, RecurrentMemoryOnlyResumesAtItsEnd) {
  FakeRunner runner({.n_cells = 64, .n_seqs = 2, .rewind = Rewind::never});
  run(runner, a, {1, 2, 3});
  EXPECT_FALSE(runner.can_resume(a, 3, 2));
  EXPECT_TRUE(runner.can_resume(a, 3, 3));
  EXPECT_FALSE(runner.remove(a, 2, -1));
  EXPECT_EQ(runner.length(a), 3);
}

TEST(FakeRunner, WindowedMemoryResumesWithinItsWindow) {
  FakeRunner runner({.n_cells = 64, .n_seqs = 2, .rewind = Rewind::window, .window = 4});
  run(runner, a, {1, 2, 3, 4, 5, 6, 7, 8});
  run(runner, a, {9, 10});
  EXPECT_TRUE(runner.can_resume(a, 10, 10));
  EXPECT_TRUE(runner.can_resume(a, 10, 8));
  EXPECT_FALSE(runner.can_resume(a, 10, 7));
}

// Wrong cells under a right state, a wrong state over right cells, no state: what a hybrid model would notice.
TEST(FakeRunner, B21_ACheckpointNeedsItsCellsAndItsState) {
  const FakeRunnerOptions options{.n_cells = 64, .n_seqs = 3, .rewind = Rewind::never};
  FakeRunner runner(options);
  const SeqId c(2);
  run(runner, a, {1, 2, 3});
  const auto cells = runner.save(a, 0, 2, SaveKind::cells), checkpoint = runner.save(a, 2, 3, SaveKind::checkpoint);
  const Token right = run(runner, a, {4});
  const auto fork = [&] {
    runner.clear(b);
    runner.share_cells(a, b, 2);
    EXPECT_FALSE(runner.can_resume(b, 2, 2));
  };
  fork();
  ASSERT_TRUE(runner.restore(b, 2, 3, {2, 3, checkpoint}));
  ASSERT_TRUE(runner.can_resume(b, 3, 3));
  EXPECT_EQ(run(runner, b, {4}), right);
  runner.clear(b);
  runner.share_cells(a, b, 3);  // all cells, and only the state is missing
  ASSERT_TRUE(runner.restore(b, 3, 3, {2, 3, checkpoint}));
  EXPECT_EQ(run(runner, b, {4}), right);

  run(runner, c, {1, 9, 3});
  const auto foreign = runner.save(c, 2, 3, SaveKind::checkpoint), wrong_cells = runner.save(c, 0, 2, SaveKind::cells);
  runner.clear(b);
  runner.share_cells(a, b, 3);
  ASSERT_TRUE(runner.restore(b, 3, 3, {2, 3, foreign}));
  EXPECT_NE(run(runner, b, {4}), right);
  runner.clear(b);
  ASSERT_TRUE(runner.restore(b, 0, 2, {0, 2, wrong_cells}));
  ASSERT_TRUE(runner.restore(b, 2, 3, {2, 3, checkpoint}));
  EXPECT_NE(run(runner, b, {4}), right);
  EXPECT_FALSE(runner.restore(b, 4, 5, {4, 8, cells}));  // not what it says
}

}  // namespace
}  // namespace coppice::engine
