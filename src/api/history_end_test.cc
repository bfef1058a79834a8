#include "api/history_end.h"

#include <gtest/gtest.h>

#include "engine/fake_runner.h"

namespace coppice::api {
namespace {

TEST(HistoryEnd, B21_StandsBeforeTheGenerationPrompt) {
  const engine::FakeTokenizer tokenizer(1000);
  const Tokens prompt{5, 6, 7, 8};
  EXPECT_EQ(history_tokens(prompt, "<7><8>", tokenizer), 2);
  EXPECT_EQ(history_tokens(prompt, "<5><6><7><8>", tokenizer), 0);
  EXPECT_EQ(history_tokens(prompt, "", tokenizer), 0);
  EXPECT_EQ(history_tokens(prompt, "<9>", tokenizer), 0);
  EXPECT_EQ(history_tokens(prompt, "7><8>", tokenizer), 0);  // a token reaches over the end
  EXPECT_EQ(history_tokens({}, "<8>", tokenizer), 0);
  EXPECT_EQ(history_tokens({8}, "<7><8>", tokenizer), 0);
}

}  // namespace
}  // namespace coppice::api
