#include "client/chat_message.h"

#include <gtest/gtest.h>

namespace coppice::bench {
namespace {

Json message_of(const std::vector<const char*>& deltas) {
  ChatMessage message;
  for (const char* delta : deltas) message.read({{"choices", Json::array({{{"delta", Json::parse(delta)}}})}});
  return message.json();
}

TEST(ChatMessage, TextsAreJoined) {
  const Json message = message_of({R"({"role":"assistant","content":null})", R"({"reasoning_content":"a"})",
                                   R"({"reasoning_content":"b"})", R"({"content":"c"})", R"({"content":"d"})", "{}"});
  EXPECT_EQ(message, Json::parse(R"({"role":"assistant","reasoning_content":"ab","content":"cd"})"));
}

TEST(ChatMessage, CallsAreJoinedByTheirIndex) {
  const Json message =
      message_of({R"({"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":"{"}}]})",
                  R"({"tool_calls":[{"index":1,"id":"y","type":"function","function":{"name":"g","arguments":"1"}}]})",
                  R"({"tool_calls":[{"index":0,"function":{"arguments":"}"}}]})"});
  EXPECT_TRUE(message["content"].is_null()) << message;
  ASSERT_EQ(message["tool_calls"].size(), 2U) << message;
  EXPECT_EQ(message["tool_calls"][0],
            Json::parse(R"({"id":"x","type":"function","function":{"name":"f","arguments":"{}"}})"));
  EXPECT_EQ(message["tool_calls"][1]["function"]["name"], "g");
}

TEST(ChatMessage, WhatIsNoDeltaChangesNothing) {
  ChatMessage message;
  for (const char* event :
       {"3", R"({"choices":[]})", R"({"choices":[{"text":"a"}]})", R"({"choices":[{"delta":5}]})"}) {
    message.read(Json::parse(event));
  }
  EXPECT_TRUE(message.json().is_null());
  message.read(Json::parse(R"({"choices":[{"delta":{"content":"a"}}]})"));
  message.read(Json::parse(R"({"choices":[{"delta":{"tool_calls":[5,{"index":100000}]}}]})"));
  EXPECT_EQ(message.json()["content"], "a");
}

}  // namespace
}  // namespace coppice::bench
