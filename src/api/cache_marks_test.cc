#include "api/cache_marks.h"

#include <gtest/gtest.h>

#include "api/normalise.h"
#include "base/json.h"

namespace coppice::api {
namespace {

using std::chrono::seconds;

std::string ttl(const char* json) {
  const auto found = read_mark_ttl(Json::parse(json));
  return found ? std::to_string(found->count() / 1'000'000) : "none";
}

TEST(CacheMarks, TtlsOfBothClouds) {
  EXPECT_EQ(ttl(R"("5m")"), "300");
  EXPECT_EQ(ttl(R"("1h")"), "3600");
  EXPECT_EQ(ttl(R"("24h")"), "86400");
  EXPECT_EQ(ttl(R"("2s")"), "2");
  EXPECT_EQ(ttl("90"), "90");
}

TEST(CacheMarks, WhatIsNoTtlIsIgnored) {
  for (const char* json : {R"("in_memory")", R"("")", R"("m")", R"("5")", R"("5 m")", R"("5mm")", R"("-5m")", "0", "-3",
                           "1.5", "null", "{}", "true", R"("99999999999999999999h")"}) {
    EXPECT_EQ(ttl(json), "none") << json;
  }
}

TEST(CacheMarks, ADayIsTheLongest) {
  for (const char* json : {R"("90d")", R"("9223372036854775807h")", "100000", "18446744073709551615"}) {
    EXPECT_EQ(ttl(json), "86400") << json;
  }
}

// The marks of a chat body, as "message:seconds" each.
std::string marks(const char* json) {
  Json body = Json::parse(json);
  std::string out;
  for (const CacheMark& mark : normalise_chat(body)) {
    out += std::to_string(mark.message) + ":" + std::to_string(mark.ttl.count() / 1'000'000) + " ";
  }
  return out;
}

TEST(CacheMarks, AreFoundOnMessagesPartsAndTools) {
  EXPECT_EQ(marks(R"({"messages":[{"role":"system","content":"s","cache_control":{"type":"ephemeral","ttl":"1h"}},
                                  {"role":"user","content":[{"type":"text","text":"a",
                                    "cache_control":{"type":"ephemeral","ttl":"5m"}},{"type":"text","text":"b"}]},
                                  {"role":"user","content":"c"}]})"),
            "0:3600 1:300 ");
  // A tool stands before the messages, in most templates in the first.
  EXPECT_EQ(marks(R"({"tools":[{"type":"function","function":{"name":"f"},"cache_control":{"ttl":"1h"}}],
                      "messages":[{"role":"user","content":"c"}]})"),
            "-1:3600 ");
  EXPECT_EQ(marks(R"({"tools":[{"type":"function","function":{"name":"f","cache_control":{"ttl":"1h"}}}],
                      "messages":[{"role":"system","content":"s"},{"role":"developer","content":"t"},
                                  {"role":"user","content":"c"}]})"),
            "1:3600 ");
}

TEST(CacheMarks, WithoutATimeTheyAskForNothing) {
  EXPECT_EQ(marks(R"({"messages":[{"role":"user","content":[{"type":"text","text":"a",
                      "cache_control":{"type":"ephemeral"},"prompt_cache_breakpoint":{"mode":"explicit"}}]}]})"),
            "");
}

TEST(CacheMarks, ABreakpointHasTheRequestsTime) {
  const char* body = R"({"prompt_cache_options":{"ttl":"30m","mode":"explicit"},
      "messages":[{"role":"user","content":[{"type":"text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}}]},
                  {"role":"user","content":[{"type":"text","text":"a","prompt_cache_breakpoint":{"ttl":"12h"}}]},
                  {"role":"user","content":"b"}]})";
  EXPECT_EQ(marks(body), "0:1800 1:43200 ");
}

TEST(CacheMarks, TheWholePromptIsMarkedByTheRequest) {
  const std::string messages = R"("messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]})";
  EXPECT_EQ(marks((R"({"cache_control":{"type":"ephemeral","ttl":"1h"},)" + messages).c_str()), "1:3600 ");
  EXPECT_EQ(marks((R"({"prompt_cache_options":{"ttl":"30m"},)" + messages).c_str()), "1:1800 ");
  EXPECT_EQ(marks((R"({"prompt_cache_retention":"24h",)" + messages).c_str()), "1:86400 ");
  EXPECT_EQ(marks((R"({"prompt_cache_retention":"in_memory",)" + messages).c_str()), "");
}

// A message of attribution alone goes; what was marked up to it ends before it.
TEST(CacheMarks, OfAMessageThatGoesIsTheOneBefores) {
  EXPECT_EQ(marks(R"({"messages":[{"role":"system","content":"s"},
                      {"role":"system","content":"x-anthropic-a: 1","cache_control":{"ttl":"1h"}},
                      {"role":"user","content":"c","cache_control":{"ttl":"5m"}}]})"),
            "0:3600 1:300 ");
}

TEST(CacheMarks, OfManyTheLastCount) {
  Json body = {{"messages", Json::array()}};
  for (int i = 0; i < 30; ++i) {
    Json message = {{"role", "user"}, {"content", "a"}};
    message["cache_control"]["ttl"] = "1h";
    body["messages"].push_back(std::move(message));
  }
  const auto found = normalise_chat(body);
  ASSERT_EQ(found.size(), 8U);
  EXPECT_EQ(found.front().message, 22);
  EXPECT_EQ(found.back(), (CacheMark{29, seconds(3600)}));
}

}  // namespace
}  // namespace coppice::api
