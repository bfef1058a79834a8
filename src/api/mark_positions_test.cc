#include "api/mark_positions.h"

#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

// The fakes render "role:content\n" per message, and a token is a byte; a BOS comes first.
class MarkPlaces : public testing::Test {
 protected:
  MarkPlaces() {
    server.templates.accepts = [this](const Json& messages) {
      ++renderings;
      return messages.size() <= messages_max;
    };
  }

  // What the request pins, as the texts that it keeps, and how often the template was rendered for it.
  std::string pins(const std::string& fields) {
    renderings = 0;
    server.post("/v1/chat/completions", "{" + fields + "}");
    const sched::Request& request = server.engine.requests.back();
    std::string out;
    for (const sched::PinWish& pin : request.placement.pins) {
      const Tokens kept(request.prompt->begin(), request.prompt->begin() + pin.length);
      out += "[" + server.tokenizer.text(kept, true) + "]" + std::to_string(pin.ttl.count() / 1'000'000) + " ";
    }
    return out;
  }

  static std::string message(const std::string& role, const std::string& content, const std::string& mark = "") {
    return R"({"role":")" + role + R"(","content":")" + content + "\"" + mark + "}";
  }

  FakeServer server;
  std::size_t messages_max = 100;
  int renderings = 0;
};

const std::string kHour = R"(,"cache_control":{"type":"ephemeral","ttl":"1h"})";

TEST_F(MarkPlaces, EndWhereTheMessagesContinuationsPart) {
  const std::string list = R"("messages":[)" + message("system", "s", kHour) + "," + message("user", "u") + "]";
  EXPECT_EQ(pins(list), "[<s>system:s\nuser:]3600 ");
  EXPECT_EQ(renderings, 3);
  EXPECT_EQ(pins(list), "[<s>system:s\nuser:]3600 ");
  EXPECT_EQ(renderings, 1) << "known by now";
  EXPECT_EQ(server.context().mark_positions.size(), 1U);
}

TEST_F(MarkPlaces, AMarkThatMovesOnCostsNoRendering) {
  const std::string u = message("user", "u", kHour), a = message("assistant", "a"), v = message("user", "v", kHour);
  EXPECT_EQ(pins(R"("messages":[)" + u + "]"), "[<s>user:u\n]3600 ");
  EXPECT_EQ(renderings, 1);
  EXPECT_EQ(pins(R"("messages":[)" + u + "," + a + "," + v + "]"),
            "[<s>user:u\n]3600 [<s>user:u\nassistant:a\nuser:v\n]3600 ");
  EXPECT_EQ(renderings, 1);
}

// A template may show an answer's beginning in another way once the answer is there.
TEST_F(MarkPlaces, AKnownPlaceThatTheTokensHaveLeftIsFoundAnew) {
  server.templates.generation_prompt = "think:";
  const std::string u = message("user", "u", kHour), a = message("assistant", "a"), v = message("user", "v");
  EXPECT_EQ(pins(R"("messages":[)" + u + "]"), "[<s>user:u\nthink:]3600 ");
  EXPECT_EQ(pins(R"("messages":[)" + u + "," + a + "," + v + "]"), "[<s>user:u\n]3600 ");
  EXPECT_EQ(renderings, 3);
}

TEST_F(MarkPlaces, ToolsEndBeforeTheUsersWords) {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"f"},"cache_control":{"ttl":"5m"}}],"messages":[)";
  EXPECT_EQ(pins(tools + message("user", "Apples") + "]"), "[<s>user:]300 ");
  EXPECT_EQ(pins(tools + message("user", "Bread") + "]"), "[<s>user:]300 ");
  EXPECT_EQ(renderings, 1);
  EXPECT_EQ(pins(tools + message("system", "s") + "," + message("user", "u") + "]"), "[<s>system:s\nuser:]300 ");
}

TEST_F(MarkPlaces, TheLongestTimeOfOnePlaceCounts) {
  EXPECT_EQ(pins(R"("prompt_cache_retention":"24h","messages":[)" + message("user", "u", kHour) + "]"),
            "[<s>user:u\n]86400 ");
}

TEST_F(MarkPlaces, WhatTheTemplateRefusesIsLeftOut) {
  messages_max = 2;
  server.templates.accepts = [](const Json& messages) { return messages.size() == 2 && messages[1]["content"] == "u"; };
  EXPECT_EQ(pins(R"("messages":[)" + message("system", "s", kHour) + "," + message("user", "u") + "]"), "");
  EXPECT_EQ(server.engine.requests.size(), 1U) << "and is no error";
}

TEST_F(MarkPlaces, OnlyTheFirstOfSeveralAnswersKeepsSomething) {
  EXPECT_EQ(pins(R"("n":2,"messages":[)" + message("user", "u", kHour) + "]"), "");
  EXPECT_EQ(server.engine.requests.front().placement.pins.size(), 1U);
}

TEST_F(MarkPlaces, WithoutATraceNothingIsKept) {
  EXPECT_EQ(pins(R"("cache_prompt":false,"messages":[)" + message("user", "u", kHour) + "]"), "");
  EXPECT_EQ(server.context().mark_positions.size(), 0U);
}

TEST_F(MarkPlaces, TheirMemoryIsBounded) {
  server.limits.mark_positions_max = 3;
  for (char c = 'a'; c < 'k'; ++c) {
    EXPECT_NE(pins(R"("messages":[)" + message("user", {c}, kHour) + "]"), "");
    EXPECT_LE(server.context().mark_positions.size(), 3U);
  }
}

TEST_F(MarkPlaces, AreThoseOfTheOtherDialectsToo) {
  server.post("/v1/messages", R"({"max_tokens":4,"system":[{"type":"text","text":"x-anthropic-a: 1"},
      {"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[
      {"role":"user","content":[{"type":"text","text":"u"}]},
      {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r",
                                 "cache_control":{"type":"ephemeral","ttl":"5m"}}]}]})");
  const auto anthropic = server.engine.requests.back().placement.pins;
  ASSERT_EQ(anthropic.size(), 2U);
  EXPECT_EQ(anthropic[0].ttl, std::chrono::hours(1));
  EXPECT_EQ(anthropic[1], (sched::PinWish{static_cast<TokenPos>(server.engine.requests.back().prompt->size()),
                                          std::chrono::minutes(5)}));

  server.post("/v1/responses", R"({"prompt_cache_options":{"mode":"explicit","ttl":"30m"},"input":[
      {"role":"developer","content":[{"type":"input_text","text":"s","prompt_cache_breakpoint":{"mode":"explicit"}}]},
      {"role":"user","content":"u"}]})");
  const auto responses = server.engine.requests.back().placement.pins;
  ASSERT_EQ(responses.size(), 1U);
  EXPECT_EQ(responses[0].ttl, std::chrono::minutes(30));
}

}  // namespace
}  // namespace coppice::api
