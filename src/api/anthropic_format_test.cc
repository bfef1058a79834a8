// POST /v1/messages: the answer, whole and as a stream.
#include "api/anthropic_format.h"

#include <gtest/gtest.h>

#include <set>

#include "api/anthropic_test_support.h"

namespace coppice::api {
namespace {

using sched::StopKind;

sched::Report report(TokenPos prompt, TokenPos reused, TokenPos predicted) {
  sched::Report out;
  out.slot = SlotId{1};
  out.prompt_tokens = prompt;
  out.reused_slot = reused;
  out.computed = prompt - reused;
  out.predicted = predicted;
  return out;
}

TEST(AnthropicFormat, StreamOfThinkingTextAndCalls) {
  FakeServer server;
  auto answer = post_message(server, R"("stream":true)");
  EXPECT_EQ(answer->stream_type, "text/event-stream; charset=utf-8");
  EXPECT_EQ(answer->written, "");
  EXPECT_TRUE(server.engine.requests[0].report_progress);
  server.engine.requests[0].sink->on_progress({.total = 10, .reused = 4, .processed = 4});
  server.engine.requests[0].sink->on_progress({.total = 10, .reused = 4, .processed = 10});
  for (const char* text : {"Rth", "Rink", "hel", "lo", "", "Tgrep", "A{\"x\"", "A:1}", "Tls", "A{}"}) {
    server.engine.text(0, text);
  }
  server.engine.finish(0, StopKind::end_of_generation, report(10, 4, 7));
  answer->run();

  ASSERT_TRUE(answer->finished);
  const auto events = events_of(*answer);
  expect_well_formed(events);
  const std::string id = events[0]["message"]["id"];
  EXPECT_TRUE(id.starts_with("msg_"));
  const std::string expected[] = {
      R"({"type":"message_start","message":{"id":")" + id +
          R"(","type":"message","role":"assistant","model":"test-model","content":[],"stop_reason":null,)"
          R"("stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":6,)"
          R"("cache_read_input_tokens":4,"output_tokens":0}}})",
      R"({"type":"ping"})",
      R"({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}})",
      R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"th"}})",
      R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"ink"}})",
      R"({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":")" + id + R"("}})",
      R"({"type":"content_block_stop","index":0})",
      R"({"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}})",
      R"({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hel"}})",
      R"({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"lo"}})",
      R"({"type":"content_block_stop","index":1})",
      R"({"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call_0","name":"grep","input":{}}})",
      R"({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}})",
      R"({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}})",
      R"({"type":"content_block_stop","index":2})",
      R"({"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"call_1","name":"ls","input":{}}})",
      R"({"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}})",
      R"({"type":"content_block_stop","index":3})",
  };
  ASSERT_EQ(events.size(), std::size(expected) + 2);
  for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(events[i].dump(), expected[i]);
  const Json& last = events[events.size() - 2];
  EXPECT_EQ(last["delta"].dump(), R"({"stop_reason":"tool_use","stop_sequence":null})");
  EXPECT_EQ(last["usage"].dump(), R"({"input_tokens":0,"cache_creation_input_tokens":6,"cache_read_input_tokens":4,)"
                                  R"("output_tokens":7})");
  EXPECT_EQ(last["coppice"]["reused"], 4);
  EXPECT_TRUE(last.contains("timings"));
}

TEST(AnthropicFormat, BlocksOfEveryOrderAreWellFormed) {
  const std::vector<const char*> cases[] = {
      {}, {"a"}, {"Rr"}, {"Tls"}, {"Tls", "A{}"}, {"a", "Rr", "b"}, {"Tls", "A{}", "a", "Tcat", "Rr"}, {"Hheld"},
  };
  for (const auto& texts : cases) {
    FakeServer server;
    auto answer = post_message(server, R"("stream":true)");
    for (const char* text : texts) server.engine.text(0, text);
    server.engine.finish(0);
    answer->run();
    expect_well_formed(events_of(*answer));
  }
}

TEST(AnthropicFormat, TheTailOfTheEngineIsParsedToo) {
  FakeServer server;
  auto answer = post_message(server, R"("stream":true)");
  server.engine.requests[0].sink->on_finished({.stop = StopKind::end_of_generation, .tail = {.text = "rest"}});
  answer->run();
  const auto events = events_of(*answer);
  expect_well_formed(events);
  EXPECT_EQ(events[3]["delta"]["text"], "rest");
}

TEST(AnthropicFormat, WholeMessage) {
  FakeServer server;
  auto answer = post_message(server, R"("session_id":"s")");
  EXPECT_FALSE(server.engine.requests[0].report_progress);
  server.engine.text(0, "hello");
  server.engine.finish(0, StopKind::end_of_generation, report(10, 4, 7));
  answer->run();
  const Json message = answer->json();
  EXPECT_EQ(message["type"], "message");
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_EQ(message["model"], "test-model");
  EXPECT_EQ(message["content"].dump(), R"([{"type":"text","text":"hello"}])");
  EXPECT_EQ(message["stop_reason"], "end_turn");
  EXPECT_EQ(message["stop_sequence"], nullptr);
  EXPECT_EQ(message["usage"]["output_tokens"], 7);
  EXPECT_EQ(message["coppice"]["session"], "s");
  EXPECT_EQ(message["timings"]["cache_n"], 4);
  EXPECT_FALSE(message.contains("diagnostics"));
}

// What the parser found, as a whole message's content.
TEST(AnthropicFormat, WholeContent) {
  const std::pair<const char*, const char*> cases[] = {
      {"Rthink", R"([{"type":"thinking","thinking":"think","signature":"SIG"}])"},
      {"Tls", R"([{"type":"tool_use","id":"call_0","name":"ls","input":{}}])"},
      {"", "[]"},
  };
  for (const auto& [text, content] : cases) {
    FakeServer server;
    auto answer = post_message(server);
    server.engine.text(0, text);
    server.engine.finish(0);
    answer->run();
    Json message = answer->json();
    for (Json& block : message["content"]) {
      if (!block.contains("signature")) continue;
      EXPECT_EQ(block["signature"], message["id"]);
      block["signature"] = "SIG";
    }
    EXPECT_EQ(message["content"].dump(), content);
  }
}

TEST(AnthropicFormat, StopReasons) {
  struct Case {
    const char* text;
    StopKind stop;
    const char *word, *reason;
  };
  const Case cases[] = {
      {"hi", StopKind::end_of_generation, "", "end_turn"},  {"hi", StopKind::length, "", "max_tokens"},
      {"Tls", StopKind::end_of_generation, "", "tool_use"}, {"Tls", StopKind::length, "", "max_tokens"},
      {"hi", StopKind::stop_word, "END", "stop_sequence"},  {"Tls", StopKind::stop_word, "END", "stop_sequence"},
      {"hi", StopKind::stop_word, "<end>", "end_turn"},     {"Tls", StopKind::stop_word, "<end>", "tool_use"},
  };
  for (const Case& c : cases) {
    for (const bool stream : {false, true}) {
      FakeServer server;
      auto answer =
          post_message(server, R"("stop_sequences":["END"],"stream":)" + std::string(stream ? "true" : "false"));
      EXPECT_EQ(server.engine.requests[0].text.stop, (std::vector<std::string>{"END", "<end>"}));
      server.engine.text(0, c.text);
      server.engine.requests[0].sink->on_finished({.stop = c.stop, .stop_word = c.word});
      answer->run();
      const Json end = stream ? events_of(*answer).end()[-2]["delta"] : answer->json();
      EXPECT_EQ(end["stop_reason"], c.reason) << c.text;
      EXPECT_EQ(end["stop_sequence"], std::string(c.reason) == "stop_sequence" ? Json("END") : Json(nullptr));
    }
  }
}

TEST(AnthropicFormat, A13_UsageCountsEachPromptTokenOnce) {
  for (const bool cached : {true, false}) {
    FakeServer server;
    auto answer = post_message(server, R"("cache_prompt":)" + std::string(cached ? "true" : "false"));
    server.engine.finish(0, StopKind::end_of_generation, cached ? report(10, 4, 1) : report(10, 0, 1));
    answer->run();
    const Json usage = answer->json()["usage"];
    EXPECT_EQ(usage["input_tokens"], cached ? 0 : 10);
    EXPECT_EQ(usage["cache_creation_input_tokens"], cached ? 6 : 0);
    EXPECT_EQ(usage["cache_read_input_tokens"], cached ? 4 : 0);
  }
}

TEST(AnthropicFormat, KeepAliveIsAPing) {
  FakeServer server;
  server.limits.sse_ping_interval_s = 7;
  auto answer = post_message(server, R"("stream":true)");
  EXPECT_EQ(answer->make_keepalive(), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
  EXPECT_EQ(answer->keepalive_interval, std::chrono::seconds(7));
}

TEST(AnthropicFormat, ErrorsInsideAStreamAreEvents) {
  FakeServer server;
  auto answer = post_message(server, R"("stream":true)");
  server.engine.text(0, "hel");
  server.engine.requests[0].sink->on_failed({ErrorKind::internal, "it broke", ""});
  answer->run();
  ASSERT_TRUE(answer->finished);
  EXPECT_EQ(events_of(*answer).back().dump(), R"({"type":"error","error":{"type":"api_error","message":"it broke"}})");
}

TEST(AnthropicFormat, IdsAreUnique) {
  FakeServer server;
  std::set<std::string> ids;
  for (std::size_t i = 0; i < 50; ++i) {
    auto answer = post_message(server);
    server.engine.finish(i);
    answer->run();
    ids.insert(answer->json()["id"].get<std::string>());
  }
  EXPECT_EQ(ids.size(), 50U);
}

}  // namespace
}  // namespace coppice::api
