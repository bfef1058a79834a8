#include "client/completion.h"

#include <gtest/gtest.h>

namespace coppice::bench {
namespace {

Result<Completion> read(const std::string& stream, int status = 200) {
  CompletionReader reader;
  double now = 1;
  for (std::size_t end = 0; end < stream.size(); now += 1) {
    const std::size_t begin = end;
    end = std::min(stream.find("\n\n", begin), stream.size() - 2) + 2;
    reader.feed(std::string_view(stream).substr(begin, end - begin), now);
  }
  return reader.finish(status, now);
}

TEST(Completion, CountsComeFromTimingsFirst) {
  const auto answer = read(
      "data: {\"choices\":[{\"text\":\"\"}]}\n\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\n"
      "data: {\"choices\":[{\"text\":\"a\"}],\"timings\":{\"cache_n\":30,\"prompt_n\":12,\"prompt_ms\":4.5}}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":42,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n");
  ASSERT_TRUE(answer) << answer.error();
  EXPECT_EQ(answer->first_ms, 2);
  EXPECT_EQ(answer->token_gap_ms_max, 1);
  EXPECT_EQ(answer->total_ms, 6);
  EXPECT_EQ(answer->n_computed, 12);
  EXPECT_EQ(answer->n_answer, 2);
  EXPECT_EQ(answer->prefill_ms, 4.5);
}

TEST(Completion, OtherServersGiveUsage) {
  const auto answer = read(
      "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"a\"}}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":42,\"completion_tokens\":1,"
      "\"prompt_tokens_details\":{\"cached_tokens\":40}}}\n\ndata: [DONE]\n\n");
  ASSERT_TRUE(answer) << answer.error();
  EXPECT_EQ(answer->first_ms, 2);
  EXPECT_EQ(answer->n_computed, 2);
  EXPECT_FALSE(answer->prefill_ms);
}

TEST(Completion, WhatIsNotCountedIsNotGuessed) {
  const std::string tokens = "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\n";
  const std::string done = "data: [DONE]\n\n";
  for (const std::string& usage : {std::string(), std::string("data: {\"choices\":[],\"usage\":null}\n\n"),
                                   std::string("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":42}}\n\n")}) {
    const auto answer = read(tokens + usage + done);
    ASSERT_TRUE(answer) << answer.error();
    EXPECT_FALSE(answer->n_computed) << "nothing says what was cached";
    EXPECT_EQ(answer->n_answer, 2);
  }
}

TEST(Completion, WhatIsNoWholeAnswerIsAnError) {
  const std::string token = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
  EXPECT_FALSE(read(token)) << "no [DONE]";
  EXPECT_FALSE(read("data: [DONE]\n\n")) << "no token";
  EXPECT_FALSE(read("data: {\"error\":{\"message\":\"x\"}}\n\n" + token + "data: [DONE]\n\n"));
  EXPECT_FALSE(read("data: nonsense\n\n" + token + "data: [DONE]\n\n"));
  const auto refused = read("{\"error\":\"too long\"}\n\n", 400);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().find("too long"), std::string::npos);
}

TEST(Completion, RequestFixesLengthAndTokens) {
  const Json body =
      completion_json({.prompt = {5, 6}, .n_answer = 3, .session = "s", .messages = nullptr}, "m", {1, 9, 7});
  EXPECT_EQ(body["prompt"], Json({5, 6}));
  EXPECT_EQ(body["max_tokens"], 3);
  EXPECT_EQ(body["session_id"], "s");
  EXPECT_EQ(body["logit_bias"]["7"], 100);
  EXPECT_FALSE(completion_json({.prompt = {5}, .messages = nullptr}, "m", {1, 9, 7}).contains("session_id"));
  const Json chat = completion_json({.prompt = {}, .messages = Json::array()}, "m", {1, 9, 7});
  EXPECT_FALSE(chat.contains("prompt"));
  EXPECT_TRUE(chat.contains("messages"));
}

}  // namespace
}  // namespace coppice::bench
