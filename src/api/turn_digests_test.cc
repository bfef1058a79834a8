#include "api/turn_digests.h"

#include <gtest/gtest.h>

#include "api/turn_digest_memory.h"
#include "base/json.h"

namespace coppice::api {
namespace {

Json message(const char* role, const std::string& content) { return {{"role", role}, {"content", content}}; }

Json turn() {
  Json body = {{"model", "m"}, {"tools", Json::array()}, {"messages", Json::array()}};
  body["tools"].push_back({{"type", "function"}, {"function", {{"name", "ls"}}}});
  for (const Json& said : {message("system", "Be brief."), message("user", "One?"), message("assistant", "1")}) {
    body["messages"].push_back(said);
  }
  return body;
}

TurnComparison compare(const Json& before, const Json& now) {
  return compare_turns(digest_turn(before, 100), digest_turn(now, 200));
}

TEST(TurnDigests, ATurnThatGoesOnChangesNothing) {
  Json next = turn();
  EXPECT_EQ(compare(turn(), next).change, TurnChange::none);
  next["messages"].push_back(message("user", "Two?"));
  next["temperature"] = 0.5;  // no matter for the prompt
  const TurnComparison found = compare(turn(), next);
  EXPECT_EQ(found.change, TurnChange::none);
  EXPECT_EQ(found.common_tokens, 100);
  EXPECT_EQ(found.missed_tokens, 0);
}

TEST(TurnDigests, TheFirstChangeIsNamed) {
  struct Case {
    const char* patch;  // JSON patch
    TurnChange change;
  };
  const Case cases[] = {
      {R"([{"op":"replace","path":"/model","value":"n"}])", TurnChange::model},
      {R"([{"op":"remove","path":"/model"}])", TurnChange::model},
      {R"([{"op":"replace","path":"/messages/0/content","value":"Be long."}])", TurnChange::system},
      {R"([{"op":"remove","path":"/messages/0"}])", TurnChange::system},
      {R"([{"op":"add","path":"/messages/1","value":{"role":"system","content":"And kind."}}])", TurnChange::system},
      {R"([{"op":"replace","path":"/tools/0/function/name","value":"cat"}])", TurnChange::tools},
      {R"([{"op":"remove","path":"/tools"}])", TurnChange::tools},
      {R"([{"op":"replace","path":"/messages/1/content","value":"Two?"}])", TurnChange::messages},
      {R"([{"op":"replace","path":"/messages/1/role","value":"assistant"}])", TurnChange::messages},
      {R"([{"op":"remove","path":"/messages/2"}])", TurnChange::messages},
      {R"([{"op":"add","path":"/messages/2","value":{"role":"system","content":"late"}}])", TurnChange::messages},
      {R"([{"op":"add","path":"/tool_choice","value":"none"}])", TurnChange::settings},
      {R"([{"op":"add","path":"/enable_thinking","value":true}])", TurnChange::settings},
      // Several at once: the first counts.
      {R"([{"op":"remove","path":"/tools"},{"op":"replace","path":"/model","value":"n"}])", TurnChange::model},
      {R"([{"op":"remove","path":"/messages/2"},{"op":"remove","path":"/tools"}])", TurnChange::tools},
      {R"([{"op":"remove","path":"/messages/2"},{"op":"add","path":"/tool_choice","value":"none"}])",
       TurnChange::messages},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(compare(turn(), turn().patch(Json::parse(c.patch))).change, c.change) << c.patch;
  }
}

TEST(TurnDigests, MissedTokensGrowWithWhatComesAfterTheChange) {
  Json before = turn();
  before["messages"].push_back(message("user", std::string(10'000, 'x')));
  const auto missed = [&](const char* path) {
    Json now = before;
    now[Json::json_pointer(path)] = "other";
    const TurnComparison found = compare(before, now);
    EXPECT_EQ(found.common_tokens + found.missed_tokens, 100) << path;
    return found.missed_tokens;
  };
  EXPECT_EQ(missed("/messages/0/content"), 100);
  EXPECT_GT(missed("/messages/1/content"), 90);
  Json now = before;
  now["messages"].push_back(message("assistant", "y"));
  now["messages"].push_back(message("user", "z"));
  Json other = now;
  other["messages"][4]["content"] = "w";
  EXPECT_LT(compare(now, other).missed_tokens, 5);
}

TEST(TurnDigests, ValuesThatLookAlikeDiffer) {
  const char* values[] = {R"("1")",      "1",           "[1]",  R"(["1"])", R"({"1":1})", R"({"1":"1"})", R"([["1"]])",
                          R"(["1",""])", R"(["","1"])", "null", "true",     R"("")",      "[]",           "{}"};
  for (const char* a : values) {
    for (const char* b : values) {
      Json one = {{"messages", Json::array()}}, two = one;
      one["messages"].push_back(Json::parse(a));
      two["messages"].push_back(Json::parse(b));
      EXPECT_EQ(compare(one, two).change == TurnChange::none, one == two) << a << b;
    }
  }
}

TEST(TurnDigestMemory, FindsByNamespaceAndId) {
  TurnDigestMemory memory(100);
  memory.remember(NamespaceId{1}, "a", digest_turn(turn(), 7));
  ASSERT_NE(memory.find(NamespaceId{1}, "a"), nullptr);
  EXPECT_EQ(memory.find(NamespaceId{1}, "a")->n_tokens, 7U);
  EXPECT_EQ(memory.find(NamespaceId{2}, "a"), nullptr);
  EXPECT_EQ(memory.find(NamespaceId{}, "a"), nullptr);
  EXPECT_EQ(memory.find(NamespaceId{1}, "b"), nullptr);
  EXPECT_EQ(memory.follow(NamespaceId{2}, "a", "b", digest_turn(turn(), 7)).change, TurnChange::not_found);
  EXPECT_EQ(memory.follow(NamespaceId{2}, "b", "c", digest_turn(turn(), 7)).change, TurnChange::none);
}

TEST(TurnDigestMemory, TheLeastRecentlyUsedGoFirst) {
  TurnDigestMemory memory(18);  // three turns of two messages
  const auto known = [&](const char* id) { return memory.find(NamespaceId{}, id) != nullptr; };
  for (const char* id : {"a", "b", "c"}) memory.remember(NamespaceId{}, id, digest_turn(turn(), 1));
  EXPECT_EQ(memory.digests(), 18U);
  EXPECT_TRUE(known("a"));
  memory.remember(NamespaceId{}, "d", digest_turn(turn(), 1));
  EXPECT_EQ(memory.digests(), 18U);
  EXPECT_FALSE(known("b"));
  EXPECT_TRUE(known("c"));
  EXPECT_TRUE(known("a"));
  memory.remember(NamespaceId{}, "a", digest_turn(turn(), 2));  // again: counted once
  EXPECT_EQ(memory.digests(), 18U);
  Json longer = turn();
  for (int i = 0; i < 12; ++i) longer["messages"].push_back(message("user", "more"));
  memory.remember(NamespaceId{}, "e", digest_turn(longer, 1));  // fills everything
  EXPECT_EQ(memory.digests(), 18U);
  EXPECT_TRUE(known("e"));
  EXPECT_FALSE(known("a"));
  longer["messages"].push_back(message("user", "more"));
  memory.remember(NamespaceId{}, "f", digest_turn(longer, 1));  // never fits
  EXPECT_FALSE(known("f"));
  EXPECT_TRUE(known("e"));
}

}  // namespace
}  // namespace coppice::api
