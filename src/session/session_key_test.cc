#include "session/session_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/json.h"

namespace coppice::session {
namespace {

using Headers = std::map<std::string, std::string>;

Result<SessionKey> find(const char* body, const Headers& headers = {}, bool infer = true,
                        const std::map<std::string, std::string>& minted = {}) {
  return find_session_key(Json::parse(body), {.header =
                                                  [&](std::string_view name) {
                                                    auto it = headers.find(std::string(name));
                                                    return it == headers.end() ? std::string_view{}
                                                                               : std::string_view{it->second};
                                                  },
                                              .minted =
                                                  [&](std::string_view id) {
                                                    auto it = minted.find(std::string(id));
                                                    return it == minted.end() ? std::string{} : it->second;
                                                  },
                                              .infer = infer});
}

TEST(SessionKey, A3_NoKeyFindsNoneAndNamesNoRule) {
  for (const char* body :
       {"{}", R"({"session_id":null})", R"({"session_id":""})", R"({"metadata":7,"messages":{}})",
        R"({"metadata":{"user_id":"not json"},"prompt_cache_key":5,"messages":[1,{"tool_calls":2}]})"}) {
    auto found = find(body, {{"user-agent", "x"}, {"x-client-request-id", "y"}});
    ASSERT_TRUE(found) << body;
    EXPECT_EQ(found->key, "") << body;
    EXPECT_EQ(found->rule, "") << body;
  }
}

struct Case {
  const char* client;
  const char* body;
  Headers headers;
  const char *key, *rule, *parent;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.client; }

class WhatClientsSend : public testing::TestWithParam<Case> {};

TEST_P(WhatClientsSend, B22_SessionIsFound) {
  const Case& c = GetParam();
  auto found = find(c.body, c.headers);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key, c.key);
  EXPECT_EQ(found->rule, c.rule);
  EXPECT_EQ(found->parent, c.parent);
}

INSTANTIATE_TEST_SUITE_P(
    Clients, WhatClientsSend,
    testing::Values(
        Case{"ours", R"({"session_id":"a"})", {{"x-session-id", "b"}}, "a", "body.session_id", ""},
        Case{"ours, parent", R"({"session_id":"a","parent_session_id":"p"})", {}, "a", "body.session_id", "p"},
        Case{"ours, header", R"({"session_id":""})", {{"x-session-id", "b"}}, "b", "header.x-session-id", ""},
        Case{"Claude Code",
             R"({"metadata":{"user_id":"{\"session_id\":\"u\"}"}})",
             {{"x-claude-code-session-id", "s"}},
             "s",
             "header.x-claude-code-session-id",
             ""},
        Case{"Claude Code sub-agent",
             "{}",
             {{"x-claude-code-session-id", "s"}, {"x-claude-code-agent-id", "7"}},
             "s/7",
             "header.x-claude-code-session-id",
             "s"},
        Case{"Claude Code sub-agent of a sub-agent",
             "{}",
             {{"x-claude-code-session-id", "s"},
              {"x-claude-code-agent-id", "8"},
              {"x-claude-code-parent-agent-id", "7"}},
             "s/8",
             "header.x-claude-code-session-id",
             "s/7"},
        Case{"Claude API",
             R"({"metadata":{"user_id":"{\"device\":1,\"session_id\":\"u\"}"}})",
             {},
             "u",
             "body.metadata.user_id#session_id",
             ""},
        Case{"Codex",
             R"({"prompt_cache_key":"k"})",
             {{"thread-id", "t"}, {"session-id", "s"}, {"x-codex-window-id", "t:0"}},
             "t",
             "header.thread-id",
             ""},
        Case{"older Codex",
             R"({"prompt_cache_key":"k"})",
             {{"conversation_id", "c"}},
             "c",
             "header.conversation_id",
             ""},
        Case{"opencode",
             "{}",
             {{"x-session-affinity", "o"}, {"x-parent-session-id", "p"}},
             "o",
             "header.x-session-affinity",
             "p"},
        Case{"web front end", "{}", {{"x-openwebui-chat-id", "w"}}, "w", "header.x-openwebui-chat-id", ""},
        Case{"OpenAI", R"({"prompt_cache_key":"k"})", {}, "k", "body.prompt_cache_key", ""},
        Case{"metadata", R"({"metadata":{"session_id":"m"}})", {}, "m", "body.metadata.session_id", ""}));

TEST(SessionKey, B22_IdsThatThisServerMintedComeBack) {
  const char* body = R"({"messages":[{"role":"assistant","tool_calls":[{"id":"call_1"}]},{"role":"tool"},
                                     {"role":"assistant","tool_calls":[{"id":"call_2"},{"id":"call_3"}]}]})";
  EXPECT_EQ(find(body, {}, true, {{"call_1", "old"}, {"call_3", "new"}})->key, "new");
  EXPECT_EQ(find(body, {}, true, {{"call_1", "old"}})->rule, "minted.messages");
  EXPECT_EQ(find(body, {}, true, {{"call_9", "other"}})->key, "");
  EXPECT_EQ(find(R"({"previous_response_id":"resp_1"})", {}, true, {{"resp_1", "r"}})->key, "r");
}

TEST(SessionKey, A3_WithoutInferenceOnlyOurOwnFieldCounts) {
  for (const char* body : {R"({"prompt_cache_key":"k"})", R"({"metadata":{"session_id":"m"}})",
                           R"({"messages":[{"tool_calls":[{"id":"call_1"}]}]})"}) {
    EXPECT_EQ(find(body, {{"x-session-id", "b"}, {"thread-id", "t"}}, false, {{"call_1", "x"}})->key, "") << body;
  }
  EXPECT_EQ(find(R"({"session_id":"a"})", {}, false)->key, "a");
}

TEST(SessionKey, RulesInOrderOfTrust) {
  const auto rules = session_rules();
  EXPECT_EQ(rules.front(), "body.session_id");
  EXPECT_EQ(rules.back(), "minted.messages");
  // Every header rule beats every body rule but the first.
  Headers all;
  for (const std::string& rule : rules) {
    if (rule.starts_with("header.")) all[rule.substr(7)] = rule;
  }
  for (const std::string& rule : rules) {
    if (!rule.starts_with("header.")) continue;
    EXPECT_EQ(find(R"({"prompt_cache_key":"k"})", all)->rule, rule);
    all.erase(rule.substr(7));
  }
}

TEST(SessionKey, LengthIsCapped) {
  const std::string fits(256, 'k'), too_long(257, 'k');
  EXPECT_EQ(find(("{\"session_id\":\"" + fits + "\"}").c_str())->key, fits);
  auto refused = find(("{\"session_id\":\"" + too_long + "\"}").c_str());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
  EXPECT_EQ(refused.error().param, "session_id");
  EXPECT_EQ(find("{}", {{"x-session-id", fits}})->key, fits);
  EXPECT_EQ(find("{}", {{"x-session-id", too_long}, {"thread-id", "t"}})->key, "t") << "passed over";
  EXPECT_EQ(find("{}", {{"x-claude-code-session-id", fits}, {"x-claude-code-agent-id", "1"}})->key, fits);
}

TEST(SessionKey, WrongTypeOfOurFieldsIsAnError) {
  for (const char* body : {R"({"session_id":7})", R"({"session_id":["a"]})", R"({"session_id":{}})"}) {
    auto found = find(body, {{"x-session-id", "b"}});
    ASSERT_FALSE(found) << body;
    EXPECT_EQ(found.error().param, "session_id");
  }
  EXPECT_EQ(find(R"({"parent_session_id":7})").error().param, "parent_session_id");
}

}  // namespace
}  // namespace coppice::session
