// Families whose state cannot be cut, on the real server with tiers (spec B21): what a dense model gets from its cells,
// they get from checkpoints.
#include <csignal>

#include "families.h"

namespace coppice::http_test {
namespace {

class Checkpoints : public FamilyTest {
 protected:
  void serve_small() {
    ASSERT_NO_FATAL_FAILURE(serve_family({"-np", "2", "-c", "1024", "--idle-prefill", "off", "--cache-ram", "64MiB",
                                          "--cache-disk", dir_.path().string()}));
  }
  static int computed(const Json& answer) { return answer["coppice"]["computed"].get<int>(); }
  static int reused(const Json& answer) { return answer["coppice"]["reused"].get<int>(); }

  // Tokens of the conversation without what makes the model answer.
  int history_of(const Json& messages) const {
    const Json rendered = client().ask("/apply-template", {{"messages", messages}, {"add_generation_prompt", false}});
    const Json tokens =
        client().ask("/tokenize", {{"content", rendered["prompt"]}, {"add_special", true}, {"parse_special", true}});
    return static_cast<int>(tokens["tokens"].size());
  }

  const Tokens one_ = random_tokens(1, 700), two_ = random_tokens(2, 800), more_ = random_tokens(3, 20);
  TempDir dir_;
};

TEST_P(Checkpoints, B21_AChatThatLeavesTheLastTurnAtItsHistoryComputesTheRest) {
  ASSERT_NO_FATAL_FAILURE(serve_small());
  const std::string text(900, 'x');
  Json messages = {{{"role", "system"}, {"content", "Rules: " + text}}, {{"role", "user"}, {"content", "Go."}}};
  client().ask("/v1/chat/completions", {{"messages", messages}, {"session_id", "S"}, {"max_tokens", 20}});
  const int history = history_of(messages);
  // Not what the model said: from here on the prompt is another one.
  messages.push_back({{"role", "assistant"}, {"content", "Well."}});
  messages.push_back({{"role", "user"}, {"content", "And now?"}});
  const Json answer =
      client().ask("/v1/chat/completions", {{"messages", messages}, {"session_id", "S"}, {"max_tokens", 5}});
  EXPECT_GE(reused(answer), history);
  EXPECT_LE(reused(answer), history + 8) << "the generation prompt, where cells are enough";
  EXPECT_EQ(answer["coppice"]["source"], "slot");
}

TEST_P(Checkpoints, B21_TheSamePromptAgainComputesOneToken) {
  ASSERT_NO_FATAL_FAILURE(serve_small());
  ask(one_, {{"session_id", "S"}});
  const Json again = ask(one_, {{"session_id", "S"}});
  EXPECT_EQ(computed(again), 1);
  expect_as_cold(again, one_);
}

TEST_P(Checkpoints, B21_WhatWasEvictedComesBackFromHostMemory) {
  ASSERT_NO_FATAL_FAILURE(serve_small());
  const Tokens held = held_after(one_, ask(one_, {{"session_id", "S"}}));
  ask(two_, {{"session_id", "T"}});
  const Tokens next = joined(held, more_);
  const Json answer = ask(next, {{"session_id", "S"}});
  EXPECT_EQ(computed(answer), length(more_));
  EXPECT_EQ(answer["coppice"]["reason"], nullptr);
  expect_as_cold(answer, next);
}

TEST_P(Checkpoints, B21_WarmAfterKill9) {
  ASSERT_NO_FATAL_FAILURE(serve_small());
  const Tokens held = held_after(one_, ask(one_, {{"session_id", "S"}}));
  EXPECT_EQ(client().ask("/v1/cache/flush", Json::object())["failed"], 0);
  server().program().signal(SIGKILL);
  ASSERT_TRUE(server().program().wait(std::chrono::seconds(60)).has_value());
  server_.reset();
  ASSERT_NO_FATAL_FAILURE(serve_small());
  const Tokens next = joined(held, more_);
  const Json answer = ask(next, {{"session_id", "S"}});
  EXPECT_EQ(computed(answer), length(more_));
  EXPECT_EQ(answer["coppice"]["source"], "disk");
  expect_as_cold(answer, next);
}

TEST_P(Checkpoints, A8_AgentsShareABaseWhoseMakerHasGoneOn) {
  ASSERT_NO_FATAL_FAILURE(serve_small());
  const Tokens base = first(one_, 400);
  client().ask("/completion", {{"prompt", joined(base, random_tokens(9, 1))}, {"n_predict", 30}, {"ignore_eos", true}});
  for (int agent = 0; agent < 2; ++agent) {
    const Tokens prompt = joined(base, random_tokens(10 + static_cast<unsigned>(agent), 20));
    const Json answer = ask(prompt, {{"session_id", std::string("agent ") + std::to_string(agent)}});
    EXPECT_EQ(computed(answer), 20);
    expect_as_cold(answer, prompt);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Checkpoints,
                         ::testing::Values(Family{"gpt-oss", true}, Family{"gemma3", true}, Family{"qwen35", false},
                                           Family{"lfm2", false}, Family{"mamba2", false}),
                         family_name);

}  // namespace
}  // namespace coppice::http_test
