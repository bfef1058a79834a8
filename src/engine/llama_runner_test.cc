#include <gtest/gtest.h>

#include <numeric>

#include "engine/demo_model_for_test.h"

namespace coppice::engine {
namespace {

using testing::ask;
using testing::demo;
using testing::DemoModel;

constexpr SeqId kA{0}, kB{1}, kC{2};

Tokens tokens_of(const std::string& text) { return demo().tokenizer->tokenize(text, false, true); }

Tokens slice(const Tokens& tokens, std::size_t begin, std::size_t end) {
  return {tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.begin() + static_cast<std::ptrdiff_t>(end)};
}

class LlamaRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override { clear_all(); }
  void TearDown() override { clear_all(); }
  void clear_all() {
    for (int i = 0; i < m_.runner->info().n_seqs; ++i) m_.runner->clear(SeqId{i});
  }

  DemoModel& m_ = demo();
  Runner& runner_ = *m_.runner;
  const Tokens prompt_ = tokens_of(ask("The code of Zorbin is 4821. What is the code of Zorbin?"));
};

TEST_F(LlamaRunnerTest, TellsWhatTheContextIs) {
  const RunnerInfo& info = runner_.info();
  EXPECT_EQ(info.n_cells, 1024);
  EXPECT_EQ(info.n_seqs, 255) << "all that llama.cpp has: they cost an attention model nothing";
  EXPECT_GE(info.n_batch, info.n_ubatch);
  EXPECT_GT(info.n_ubatch, 0);
  EXPECT_EQ(info.rewind, Rewind::anywhere);
  EXPECT_EQ(info.bytes_per_cell, 2048U) << "4 layers, K and V of 2 heads of 64, 2 bytes each";
}

TEST_F(LlamaRunnerTest, AnswersFromItsPrompt) {
  const std::string answer = m_.generate_text({{"temperature", 0}}, ask("The code of Zorbin is 4821."), 32);
  EXPECT_EQ(answer, "OK, noted.");
  EXPECT_EQ(m_.generate_text({{"temperature", 0}},
                             "<|im_start|>user\nThe code of Zorbin is 4821.<|im_end|>\n<|im_start|>assistant\n"
                             "OK, noted.<|im_end|>\n" +
                                 ask("What is the code of Zorbin?"),
                             32),
            "The code of Zorbin is 4821.");
}

TEST_F(LlamaRunnerTest, A8_SharedCellsGiveTheSameLogitsToTheBit) {
  const std::size_t p = prompt_.size() - 3;
  m_.eval(kA, slice(prompt_, 0, p));
  const auto whole = m_.log_probs(m_.eval(kA, slice(prompt_, p, prompt_.size()), static_cast<TokenPos>(p)));

  const auto end = static_cast<TokenPos>(p);
  ASSERT_TRUE(runner_.can_resume(kA, static_cast<TokenPos>(prompt_.size()), end));
  runner_.share(kA, kB, 0, end);
  runner_.remove(kA, end, -1);  // so that the same number of cells is used
  EXPECT_EQ(m_.log_probs(m_.eval(kB, slice(prompt_, p, prompt_.size()), end)), whole);

  // The donor may go; who took the prefix keeps it. And a third one can take it from there, in two pieces.
  runner_.clear(kA);
  runner_.share(kB, kC, 0, 5);
  runner_.share(kB, kC, 5, end);
  runner_.clear(kB);
  EXPECT_EQ(m_.log_probs(m_.eval(kC, slice(prompt_, p, prompt_.size()), end)), whole);
}

// The negative control of the test above: cells of other tokens, or one cell too few, are noticed.
TEST_F(LlamaRunnerTest, WrongCellsGiveOtherLogits) {
  const std::size_t p = prompt_.size() - 3;
  const auto whole = m_.log_probs(m_.eval(kA, prompt_));
  Tokens other = slice(prompt_, 0, p);
  std::swap(other[p / 2], other[p / 2 + 1]);
  m_.eval(kB, other);
  const auto wrong = m_.log_probs(m_.eval(kB, slice(prompt_, p, prompt_.size()), static_cast<TokenPos>(p)));
  double difference = 0;
  for (std::size_t i = 0; i < whole.size(); ++i)
    difference = std::max<double>(difference, std::abs(whole[i] - wrong[i]));
  EXPECT_GT(difference, 1e-3);
}

TEST_F(LlamaRunnerTest, A8_SharingTakesNoCells) {
  const TokenPos n_cells = runner_.info().n_cells;
  Tokens base(static_cast<std::size_t>(n_cells - 300));
  std::iota(base.begin(), base.end(), 300);
  for (Token& t : base) t = 300 + t % 700;
  m_.eval(kA, base);
  const auto length = static_cast<TokenPos>(base.size());
  for (SeqId seq : {kB, kC}) {
    runner_.share(kA, seq, 0, length);
    m_.eval(seq, Tokens(100, 400), length);
  }
  m_.eval(kA, Tokens(100, 500), length);
  const BatchItem one_more{.token = 1, .pos = length + 100, .seq = kA, .want_logits = true};
  EXPECT_EQ(runner_.decode({&one_more, 1}), DecodeStatus::no_cells) << "P + sum(own) cells are in use: all";
}

TEST_F(LlamaRunnerTest, RemovingATailAndEvaluatingAgainGivesTheSameLogits) {
  const auto first = m_.log_probs(m_.eval(kA, prompt_));
  const TokenPos length = static_cast<TokenPos>(prompt_.size());
  const TokenPos cut = length - 1;
  m_.eval(kA, tokens_of("Something else entirely."), length);
  EXPECT_TRUE(runner_.remove(kA, length, -1));
  EXPECT_TRUE(runner_.remove(kA, cut, length));
  const auto again = m_.log_probs(m_.eval(kA, slice(prompt_, prompt_.size() - 1, prompt_.size()), cut));
  ASSERT_EQ(first.size(), again.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], again[i], 1e-3) << "another batch shape";
}

TEST_F(LlamaRunnerTest, RemovingNothingIsFine) {
  EXPECT_TRUE(runner_.remove(kA, 0, -1));
  m_.eval(kA, prompt_);
  EXPECT_TRUE(runner_.remove(kA, static_cast<TokenPos>(prompt_.size()), -1));
  EXPECT_TRUE(runner_.remove(kA, 3, 3));
  EXPECT_TRUE(runner_.remove(kA, 0, -1));
  m_.eval(kA, prompt_);  // from position 0 again, so all was gone
}

TEST_F(LlamaRunnerTest, CanResumeAnywhereUpToTheEnd) {
  m_.eval(kA, prompt_);
  const auto length = static_cast<TokenPos>(prompt_.size());
  for (TokenPos at : {0, 1, length - 1, length}) EXPECT_TRUE(runner_.can_resume(kA, length, at)) << at;
  EXPECT_FALSE(runner_.can_resume(kA, length, length + 1));
  EXPECT_FALSE(runner_.can_resume(kA, length, -1));
}

TEST_F(LlamaRunnerTest, FullCellsAreReportedAndServeAgainAfterAClear) {
  std::vector<BatchItem> batch;
  const auto fill = [&](SeqId seq) {
    for (TokenPos pos = 0;; pos += 200) {
      batch.clear();
      for (TokenPos i = 0; i < 200; ++i) batch.push_back({300 + i, pos + i, seq, false});
      if (const DecodeStatus status = runner_.decode(batch); status != DecodeStatus::ok) return status;
      if (pos > runner_.info().n_cells) return DecodeStatus::failed;
    }
  };
  EXPECT_EQ(fill(kA), DecodeStatus::no_cells);
  runner_.clear(kA);
  EXPECT_EQ(fill(kB), DecodeStatus::no_cells);
  runner_.clear(kB);
  m_.eval(kC, prompt_);
}

TEST_F(LlamaRunnerTest, SequencesInOneBatchDoNotSeeEachOther) {
  const auto alone = m_.log_probs(m_.eval(kA, prompt_));
  runner_.clear(kA);
  std::vector<BatchItem> batch;
  for (std::size_t i = 0; i < prompt_.size(); ++i) {
    batch.push_back({prompt_[i], static_cast<TokenPos>(i), kA, i + 1 == prompt_.size()});
    batch.push_back({300 + static_cast<Token>(i), static_cast<TokenPos>(i), kB, i + 1 == prompt_.size()});
  }
  ASSERT_EQ(runner_.decode(batch), DecodeStatus::ok);
  // Indices are those of the batch items, not of the outputs.
  const auto together = m_.log_probs(static_cast<std::int32_t>(batch.size()) - 2);
  const auto other = m_.log_probs(static_cast<std::int32_t>(batch.size()) - 1);
  double difference = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_NEAR(alone[i], together[i], 1e-2);
    difference = std::max<double>(difference, std::abs(alone[i] - other[i]));
  }
  EXPECT_GT(difference, 1.0);
}

TEST_F(LlamaRunnerTest, AWrongPositionFailsInsteadOfCrashing) {
  m_.eval(kA, prompt_);
  const BatchItem gap{.token = 1, .pos = static_cast<TokenPos>(prompt_.size()) + 5, .seq = kA, .want_logits = true};
  EXPECT_EQ(runner_.decode({&gap, 1}), DecodeStatus::failed);
}

}  // namespace
}  // namespace coppice::engine
