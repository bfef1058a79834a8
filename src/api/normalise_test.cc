#include "api/normalise.h"

#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

std::string normal(const char* body) {
  Json json = Json::parse(body);
  normalise_chat(json);
  Json again = json;
  normalise_chat(again);
  EXPECT_EQ(again, json);
  return json.dump();
}

TEST(Normalise, AttributionLinesGoWithTheirNewline) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"x-anthropic-billing-header: a=1;\nYou are.", "You are."},
      {"One\nx-anthropic-a: 1\nx-anthropic-b: 2\nTwo\n", "One\nTwo\n"},
      {"One\nx-anthropic-a: 1", "One"},
      {"One\nx-anthropic-a: 1\n", "One\n"},
      {"x-anthropic-a", ""},
      {"x-anthropic-a\n", ""},
      {"\nx-anthropic-a\n\n", "\n\n"},
      {"say x-anthropic-a\n x-anthropic-b", "say x-anthropic-a\n x-anthropic-b"},
      {"X-Anthropic-a\nx-anthropi", "X-Anthropic-a\nx-anthropi"},
  };
  for (const auto& [text, left] : cases) {
    EXPECT_EQ(without_attribution(text), left) << text;
    EXPECT_EQ(without_attribution(left), left) << text;
  }
}

TEST(Normalise, OnlySystemTextIsStripped) {
  EXPECT_EQ(
      normal(R"({"messages":[{"role":"system","content":"x-anthropic-a: 1\nBe brief."},
                                   {"role":"user","content":"x-anthropic-a: 1\nWhy?"},
                                   {"role":"developer","content":"So.\nx-anthropic-a: 2"}]})"),
      R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"x-anthropic-a: 1\nWhy?"},)"
      R"({"role":"developer","content":"So."}]})");
}

TEST(Normalise, PartsAndMessagesThatWereNothingElseGo) {
  EXPECT_EQ(normal(R"({"messages":[{"role":"system","content":[{"type":"text","text":"x-anthropic-a: 1\n"},
                                                               {"type":"text","text":"One"},
                                                               {"type":"text","text":"x-anthropic-b"},
                                                               {"type":"text","text":"Two"}]},
                                   {"role":"system","content":"x-anthropic-c"},
                                   {"role":"system","content":[{"type":"text","text":"x-anthropic-c"}]},
                                   {"role":"system","content":""}]})"),
            R"({"messages":[{"role":"system","content":"One\nTwo"},{"role":"system","content":""}]})");
}

TEST(Normalise, TextPartsBecomeOneString) {
  EXPECT_EQ(normal(R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
                                   {"role":"tool","content":[{"type":"text","text":"c"}],"tool_call_id":"t"},
                                   {"role":"user","content":[]},
                                   {"role":"assistant","content":null,"tool_calls":[]}]})"),
            R"({"messages":[{"role":"user","content":"a\nb"},{"role":"tool","content":"c","tool_call_id":"t"},)"
            R"({"role":"user","content":""},{"role":"assistant","content":null,"tool_calls":[]}]})");
}

TEST(Normalise, CacheMarksGo) {
  EXPECT_EQ(normal(R"({"messages":[{"role":"user","cache_control":{"type":"ephemeral"},"prompt_cache_breakpoint":1,
                              "content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}],
                 "tools":[{"type":"function","cache_control":{"type":"ephemeral"},
                           "function":{"name":"f","prompt_cache_breakpoint":true}}]})"),
            R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}]})");
}

TEST(Normalise, WhatIsWrongStaysForTheReaderThatSaysSo) {
  for (const char* body : {R"({})", R"({"messages":5,"tools":{}})", R"({"messages":[5,null],"tools":[3]})",
                           R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
                           R"({"messages":[{"role":"system","content":[{"type":"text"},5]}]})",
                           R"({"messages":[{"role":7,"content":{"a":1}}]})"}) {
    EXPECT_EQ(normal(body), Json::parse(body).dump());
  }
}

// The same prompt by every route, and by a pool.
TEST(Normalise, B22_EveryRouteRendersTheNormalForm) {
  FakeServer server;
  const std::string marked =
      R"({"messages":[{"role":"system","content":[{"type":"text","text":"x-anthropic-a: 7"},{"type":"text","text":"S"}]},
                      {"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}])";
  EXPECT_EQ(server.post("/apply-template", marked + "}")->json()["prompt"], "system:S\nuser:hi\n");
  server.post("/v1/chat/completions", marked + "}");
  server.post("/v1/pools", marked + R"(,"name":"p","add_generation_prompt":false})");
  ASSERT_EQ(server.engine.requests.size(), 2U);
  const Tokens expected = server.tokenizer.tokenize("system:S\nuser:hi\n", true, true);
  EXPECT_EQ(*server.engine.requests[0].prompt, expected);
  EXPECT_EQ(*server.engine.requests[1].prompt, expected);
}

}  // namespace
}  // namespace coppice::api
