#include "api/conversation.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace coppice::api {
namespace {

Digest last(const char* body, NamespaceId ns = {}) { return conversation_digests(ns, Json::parse(body)).back(); }

TEST(Conversation, B23_HowItIsWrittenDownDoesNotMatter) {
  const Digest plain = last(R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"U"},
    {"role":"assistant","content":"Let me see.","tool_calls":[{"id":"call_1","type":"function","function":
      {"name":"f","arguments":"{\"a\": 1, \"b\": [2, 3]}"}}]},{"role":"tool","tool_call_id":"call_1","content":"R"}]})");
  for (
      const char* other :
      {R"({"messages":[{"role":"developer","content":[{"type":"text","text":"S"}]},{"role":"user","content":"U"},
    {"role":"assistant","content":" Let me see.\n","reasoning_content":"hm","tool_calls":[{"id":"other","function":
      {"arguments":"{\"b\":[2,3],\"a\":1}","name":"f"}}]},{"role":"tool","content":[{"type":"text","text":"R"}]}]})",
       R"({"temperature":1,"tools":[],"tool_choice":null,"messages":[{"role":"system","content":"S"},{"content":[{"type":"text","text":"U","cache_control":{}}],"role":"user"},
    {"role":"assistant","content":"Let me see.","tool_calls":[{"id":"call_1","function":
      {"name":"f","arguments":"{\"a\":1,\"b\":[2,3]}"}}]},{"role":"tool","tool_call_id":"x","content":"R"}]})"}) {
    EXPECT_EQ(last(other), plain) << other;
  }
}

TEST(Conversation, B23_WhatItMeansDoes) {
  const char* variants[] = {
      R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"A"}]})",
      R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"B"}]})",
      R"({"messages":[{"role":"user","content":"UA"},{"role":"assistant","content":""}]})",
      R"({"messages":[{"role":"system","content":"U"},{"role":"assistant","content":"A"}]})",
      R"({"messages":[{"role":"user","content":"U "},{"role":"assistant","content":"A"}]})",
      R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"A","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]})",
      R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"A","tool_calls":[{"function":{"name":"g","arguments":"{}"}}]}]})",
      R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"A","tool_calls":[{"function":{"name":"f","arguments":"{\"x\":\"1\"}"}}]}]})",
      R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"A","tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}}]}]})",
      R"({"tools":[{"x":1}],"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"A"}]})",
      R"({"chat_template_kwargs":{"enable_thinking":false},"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"A"}]})",
  };
  for (std::size_t i = 0; i < std::size(variants); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(last(variants[i]), last(variants[j])) << variants[i] << variants[j];
  }
}

TEST(Conversation, B23_HowTheNextAnswerIsToBeIsNotPartOfTheConversation) {
  const char* plain = R"({"messages":[{"role":"user","content":"U"}]})";
  for (const char* other : {R"({"tool_choice":"none","messages":[{"role":"user","content":"U"}]})",
                            R"({"parallel_tool_calls":false,"messages":[{"role":"user","content":"U"}]})",
                            R"({"response_format":{"type":"json_object"},"messages":[{"role":"user","content":"U"}]})",
                            R"({"grammar":"root ::= [ab]","messages":[{"role":"user","content":"U"}]})",
                            R"({"reasoning_budget_tokens":1,"messages":[{"role":"user","content":"U"}]})"}) {
    EXPECT_EQ(last(other), last(plain)) << other;
    EXPECT_NE(answer_shape_digest({}, Json::parse(other)), answer_shape_digest({}, Json::parse(plain))) << other;
  }
}

TEST(Conversation, B24_NamespacesNeverMeet) {
  const char* body = R"({"messages":[{"role":"user","content":"U"}]})";
  EXPECT_NE(last(body, NamespaceId{1}), last(body, NamespaceId{2}));
}

TEST(Conversation, DigestAfterAnAnswerIsThatOfTheBodyWithIt) {
  chat::Message answer;
  answer.content = "A\n";
  answer.reasoning = "hm";
  answer.tool_calls.push_back({"call_1", "f", R"({"b":1,"a":2})"});
  EXPECT_EQ(digest_after(last(R"({"messages":[{"role":"user","content":"U"}]})"), answer),
            last(R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"A",
                     "tool_calls":[{"id":"call_1","function":{"name":"f","arguments":"{\"a\":2, \"b\":1}"}}]}]})"));
}

TEST(Conversation, AnythingAClientMaySendGivesADigestOrNone) {
  EXPECT_TRUE(conversation_digests({}, Json::parse("{}")).empty());
  EXPECT_TRUE(conversation_digests({}, Json::parse(R"({"messages":7})")).empty());
  const char* odd = R"({"messages":[7,null,{},{"role":5,"content":7},{"role":"assistant","content":[1,{"text":2}],
                        "tool_calls":[1,{"function":3},{"function":{"name":1,"arguments":{"a":1}}}]},{"role":"assistant","tool_calls":{}}]})";
  EXPECT_EQ(conversation_digests({}, Json::parse(odd)).size(), 6U);
}

}  // namespace
}  // namespace coppice::api
