// Minimal requests in the shape that Claude Code sends. What must not change between its turns is the beginning of the
// prompt.
#include <gtest/gtest.h>

#include "api/anthropic_test_support.h"

namespace coppice::api {
namespace {

constexpr const char* kFirstTurn = R"({
  "model": "claude-model",
  "max_tokens": 32000,
  "stream": true,
  "metadata": {"user_id": "{\"device_id\":\"d\",\"session_id\":\"5e55\"}"},
  "thinking": {"type": "adaptive"},
  "output_config": {"effort": "high"},
  "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
  "system": [
    {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.0.abc; cc_entrypoint=cli;"},
    {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
  ],
  "tools": [
    {"name": "Read", "description": "Reads a file.", "input_schema": {"$schema": "draft", "type": "object",
      "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false}},
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
  ],
  "messages": [
    {"role": "user", "content": [
      {"type": "text", "text": "<reminder>Be careful.</reminder>"},
      {"type": "text", "text": "What is in a.txt?", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}
  ]})";

// The second turn: the mark has moved, the first message is a string, the header says something else, and a system
// message came in between.
constexpr const char* kSecondTurn = R"({
  "model": "claude-model",
  "max_tokens": 32000,
  "stream": true,
  "metadata": {"user_id": "{\"device_id\":\"d\",\"session_id\":\"5e55\"}"},
  "thinking": {"type": "adaptive"},
  "output_config": {"effort": "high"},
  "system": [
    {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.0.def; cc_entrypoint=cli;"},
    {"type": "text", "text": "You are an agent."}
  ],
  "tools": [
    {"name": "Read", "description": "Reads a file.", "input_schema": {"$schema": "draft", "type": "object",
      "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false}},
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
  ],
  "messages": [
    {"role": "user", "content": "<reminder>Be careful.</reminder>\nWhat is in a.txt?"},
    {"role": "assistant", "content": [
      {"type": "thinking", "thinking": "I should look.", "signature": "msg_1"},
      {"type": "text", "text": "Let me see."},
      {"type": "tool_use", "id": "call_1", "name": "Read", "input": {"path": "a.txt"}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "call_1", "is_error": true,
       "content": "<tool_use_error>File does not exist.</tool_use_error>"},
      {"type": "text", "text": "<reminder>Go on.</reminder>", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
    {"role": "system", "content": "The user is away."}
  ]})";

TEST(ClaudeCode, FirstTurn) {
  FakeServer server;
  server.post("/v1/messages", kFirstTurn);
  ASSERT_EQ(server.engine.requests.size(), 1U);
  const Json& chat = chat_body(server);
  EXPECT_EQ(chat["messages"].dump(),
            R"([{"role":"system","content":"You are an agent."},)"
            R"({"role":"user","content":"<reminder>Be careful.</reminder>\nWhat is in a.txt?"}])");
  ASSERT_EQ(chat["tools"].size(), 1U);
  EXPECT_EQ(chat["tools"][0]["function"]["name"], "Read");
  EXPECT_EQ(chat["tools"][0]["function"]["parameters"]["required"].dump(), R"(["path"])");
  EXPECT_EQ(chat["enable_thinking"], true);
  EXPECT_EQ(chat["reasoning_effort"], "high");
  EXPECT_EQ(chat["max_tokens"], 32000);
  EXPECT_EQ(chat["metadata"]["user_id"], R"({"device_id":"d","session_id":"5e55"})");  // for session inference
}

TEST(ClaudeCode, B22_TheSecondTurnBeginsWithTheFirst) {
  FakeServer server;
  server.model.n_ctx = 1000;
  server.post("/v1/messages", kFirstTurn);
  server.post("/v1/messages", kSecondTurn);
  ASSERT_EQ(server.engine.requests.size(), 2U);
  const Tokens& first = *server.engine.requests[0].prompt;
  const Tokens& second = *server.engine.requests[1].prompt;
  ASSERT_GT(second.size(), first.size());
  EXPECT_EQ(Tokens(second.begin(), second.begin() + static_cast<std::ptrdiff_t>(first.size())), first);

  const Json& before = chat_body(server, 0);
  const Json& now = chat_body(server, 1);
  EXPECT_EQ(now["tools"], before["tools"]);
  EXPECT_EQ(now["messages"][0], before["messages"][0]);
  EXPECT_EQ(now["messages"][1], before["messages"][1]);
  const char* rest[] = {
      R"({"role":"assistant","content":"Let me see.","reasoning_content":"I should look.","reasoning_signature":"msg_1",)"
      R"("tool_calls":[{"id":"call_1","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a.txt\"}"}}]})",
      R"({"role":"tool","tool_call_id":"call_1","content":"<tool_use_error>File does not exist.</tool_use_error>"})",
      R"({"role":"user","content":"<reminder>Go on.</reminder>"})",
      R"({"role":"system","content":"The user is away."})",
  };
  ASSERT_EQ(now["messages"].size(), 2 + std::size(rest));
  for (std::size_t i = 0; i < std::size(rest); ++i) EXPECT_EQ(now["messages"][i + 2].dump(), rest[i]);
}

// The title of a conversation, the count of its tokens, and the probe before all: smaller requests of the same client.
TEST(ClaudeCode, SideRequests) {
  FakeServer server;
  server.post("/v1/messages", R"({"model":"small","max_tokens":512,"stream":true,"temperature":1,
    "system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.0.ghi;"},
              {"type":"text","text":"Give a title."}],
    "messages":[{"role":"user","content":[{"type":"text","text":"What is in a.txt?"}]}],"tools":[],
    "output_config":{"format":{"type":"json_schema","schema":{"type":"object",
      "properties":{"title":{"type":"string"}},"required":["title"],"additionalProperties":false}}}})");
  ASSERT_EQ(server.engine.requests.size(), 1U);
  EXPECT_EQ(chat_body(server)["response_format"]["json_schema"]["schema"]["required"].dump(), R"(["title"])");
  server.post("/v1/messages", R"({"model":"small","max_tokens":1,"messages":[{"role":"user","content":"quota"}],
    "metadata":{"user_id":"u"}})");
  ASSERT_EQ(server.engine.requests.size(), 2U);
  EXPECT_EQ(server.engine.requests[1].n_predict, 1);
  EXPECT_EQ(
      server
          .post("/v1/messages/count_tokens", R"({"model":"m","messages":[{"role":"user","content":"foo"}],"tools":[]})")
          ->response.status,
      200);
}

}  // namespace
}  // namespace coppice::api
