// POST /v1/chat/completions: the exact shapes of wire.md.
#include "api/chat_format.h"

#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

using sched::StopKind;

constexpr const char* kChat = R"({"messages":[{"role":"user","content":"hi"}]})";

std::string chat_with(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"hi"}],)" + fields + "}";
}

// The choice of a chunk as text, so that a test shows what the client sees.
std::string choice(const Json& chunk) { return chunk["choices"][0].dump(); }

TEST(Chat, BecomesARequestToTheEngine) {
  FakeServer server;
  server.post("/v1/chat/completions", chat_with(R"("stop":["a","","b"],"max_tokens":9,"max_completion_tokens":7)"));
  ASSERT_EQ(server.engine.requests.size(), 1U);
  const sched::Request& request = server.engine.requests[0];
  EXPECT_EQ(*request.prompt, server.tokenizer.tokenize("user:hi\n", true, true));
  EXPECT_EQ(request.text.stop, (std::vector<std::string>{"a", "b", "<end>"}));
  EXPECT_EQ(request.text.visible, std::unordered_set<Token>{FakeTokenizer::kCall});
  EXPECT_EQ(request.n_predict, 7);
  EXPECT_FALSE(request.text.return_tokens);
  EXPECT_FALSE(request.report_progress);
}

TEST(Chat, StreamOfReasoningContentAndToolCalls) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", chat_with(R"("stream":true)"));
  EXPECT_EQ(answer->stream_type, "text/event-stream; charset=utf-8");
  EXPECT_EQ(answer->written, "");
  for (const char* text : {"Rthink", "hello", "", "Tgrep", "A{\"x\"", "A:1}", "Tls", "A{}"})
    server.engine.text(0, text);
  server.engine.finish(0);
  answer->run();

  ASSERT_TRUE(answer->finished);
  EXPECT_EQ(answer->records().back(), "[DONE]");
  const auto chunks = answer->chunks();
  ASSERT_EQ(chunks.size(), 9U);
  const char* expected[] = {
      R"({"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null})",
      R"({"index":0,"delta":{"reasoning_content":"think"},"finish_reason":null})",
      R"({"index":0,"delta":{"content":"hello"},"finish_reason":null})",
      R"({"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_0","type":"function","function":{"name":"grep","arguments":""}}]},"finish_reason":null})",
      R"({"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]},"finish_reason":null})",
      R"({"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":null})",
      R"({"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_1","type":"function","function":{"name":"ls","arguments":""}}]},"finish_reason":null})",
      R"({"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"finish_reason":null})",
      R"({"index":0,"delta":{},"finish_reason":"tool_calls"})",
  };
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_EQ(choice(chunks[i]), expected[i]);
    EXPECT_EQ(chunks[i]["id"], chunks[0]["id"]);
    EXPECT_EQ(chunks[i]["object"], "chat.completion.chunk");
    EXPECT_EQ(chunks[i]["created"], 1234);
    EXPECT_EQ(chunks[i]["model"], "test-model");
    EXPECT_FALSE(chunks[i].contains("usage"));
    EXPECT_EQ(chunks[i].contains("coppice"), i == 8);
    EXPECT_EQ(chunks[i].contains("timings"), i == 8);
  }
  EXPECT_TRUE(chunks[0]["id"].get<std::string>().starts_with("chatcmpl-"));
}

TEST(Chat, StreamWithUsage) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions",
                            chat_with(R"("stream":true,"stream_options":{"include_usage":true},"session_id":"s")"));
  server.engine.text(0, "hello");
  server.engine.finish(0, StopKind::length, full_report());
  answer->run();
  const auto chunks = answer->chunks();
  ASSERT_EQ(chunks.size(), 4U);
  EXPECT_EQ(choice(chunks[2]), R"({"index":0,"delta":{},"finish_reason":"length"})");
  EXPECT_EQ(chunks[2]["coppice"]["session"], "s");
  EXPECT_EQ(chunks[3]["choices"].dump(), "[]");
  EXPECT_EQ(chunks[3]["usage"].dump(), R"({"prompt_tokens":100,"completion_tokens":8,"total_tokens":108,)"
                                       R"("prompt_tokens_details":{"cached_tokens":60},"cache_read_input_tokens":60})");
  EXPECT_EQ(chunks[3]["coppice"], chunks[2]["coppice"]);
  EXPECT_EQ(chunks[3]["timings"], chunks[2]["timings"]);
  EXPECT_EQ(answer->records().back(), "[DONE]");
}

TEST(Chat, FinishReasons) {
  struct Case {
    const char* text;
    StopKind stop;
    const char* reason;
  };
  const Case cases[] = {
      {"hi", StopKind::end_of_generation, "stop"},  {"hi", StopKind::stop_word, "stop"},
      {"hi", StopKind::length, "length"},           {"Tgrep", StopKind::end_of_generation, "tool_calls"},
      {"Tgrep", StopKind::stop_word, "tool_calls"}, {"Tgrep", StopKind::length, "length"},
  };
  for (const Case& c : cases) {
    for (const char* body : {kChat, R"({"stream":true,"messages":[]})"}) {
      FakeServer server;
      auto answer = server.post("/v1/chat/completions", body);
      server.engine.text(0, c.text);
      server.engine.finish(0, c.stop);
      answer->run();
      const Json last = answer->stream_type.empty() ? answer->json() : answer->chunks().back();
      EXPECT_EQ(last["choices"][0]["finish_reason"], c.reason) << c.text;
    }
  }
}

TEST(Chat, TextHeldByTheParserComesAtTheEnd) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", chat_with(R"("stream":true)"));
  server.engine.text(0, "Hmaybe a call");
  answer->run();
  EXPECT_EQ(answer->chunks().size(), 1U);  // the role alone
  server.engine.finish(0);
  answer->run();
  EXPECT_EQ(choice(answer->chunks()[1]), R"({"index":0,"delta":{"content":"maybe a call"},"finish_reason":null})");
}

TEST(Chat, TailOfTheEngineIsParsedToo) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", chat_with(R"("stream":true)"));
  server.engine.requests[0].sink->on_finished({.stop = StopKind::end_of_generation, .tail = {.text = "rest"}});
  answer->run();
  const auto chunks = answer->chunks();
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(choice(chunks[1]), R"({"index":0,"delta":{"content":"rest"},"finish_reason":null})");
}

TEST(Chat, WholeAnswer) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", kChat);
  server.engine.text(0, "hel");
  server.engine.text(0, "lo");
  server.engine.finish(0, StopKind::end_of_generation, full_report());
  EXPECT_EQ(answer->n_sent, 0);
  answer->run();
  const Json json = answer->json();
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["created"], 1234);
  EXPECT_EQ(json["choices"].dump(),
            R"([{"index":0,"message":{"role":"assistant","content":"hello"},"logprobs":null,"finish_reason":"stop"}])");
  EXPECT_EQ(json["usage"]["prompt_tokens"], 100);
  EXPECT_EQ(json["coppice"]["reused"], 60);
  EXPECT_EQ(json["timings"]["cache_n"], 60);
}

TEST(Chat, WholeAnswerOfToolCallsHasNullContent) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", kChat);
  server.engine.text(0, "Tgrep");
  server.engine.finish(0);
  answer->run();
  EXPECT_EQ(answer->json()["choices"][0]["message"].dump(),
            R"({"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function",)"
            R"("function":{"name":"grep","arguments":""}}]})");
}

TEST(Chat, WholeAnswerWithReasoning) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", kChat);
  server.engine.text(0, "Rthink");
  server.engine.finish(0);
  answer->run();
  EXPECT_EQ(answer->json()["choices"][0]["message"].dump(),
            R"({"role":"assistant","content":"","reasoning_content":"think"})");
}

TEST(Chat, Progress) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", chat_with(R"("stream":true,"return_progress":true)"));
  EXPECT_TRUE(server.engine.requests[0].report_progress);
  server.engine.requests[0].sink->on_progress(
      {.total = 10, .reused = 4, .processed = 6, .elapsed = std::chrono::milliseconds(3)});
  answer->run();
  const auto chunks = answer->chunks();
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(choice(chunks[1]), R"({"index":0,"delta":{},"finish_reason":null})");
  EXPECT_EQ(chunks[1]["prompt_progress"].dump(), R"({"total":10,"cache":4,"processed":6,"time_ms":3.0})");
}

sched::TextDelta with_probs(std::string text) {
  sched::TextDelta delta{.text = text};
  delta.probs.push_back({.sampled = {.token = 'a', .logprob = -0.5, .top = {{'a', -0.5}, {'b', -1.5}}}, .piece = text});
  return delta;
}

TEST(Chat, Logprobs) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", chat_with(R"("logprobs":true,"top_logprobs":2)"));
  EXPECT_EQ(server.engine.requests[0].probs.n_probs, 2);
  server.engine.requests[0].sink->on_delta(with_probs("a"));
  server.engine.finish(0);
  answer->run();
  EXPECT_EQ(answer->json()["choices"][0]["logprobs"].dump(),
            R"({"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[)"
            R"({"token":"a","logprob":-0.5,"bytes":[97]},{"token":"b","logprob":-1.5,"bytes":[98]}]}]})");
}

TEST(Chat, LogprobsWithoutAlternatives) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", chat_with(R"("logprobs":true)"));
  EXPECT_EQ(server.engine.requests[0].probs.n_probs, 1);  // the engine must report something
  server.engine.requests[0].sink->on_delta(with_probs("a"));
  server.engine.finish(0);
  answer->run();
  EXPECT_EQ(answer->json()["choices"][0]["logprobs"]["content"][0]["top_logprobs"].dump(), "[]");
}

TEST(Chat, LogprobsOfHeldTextComeWithTheNextPiece) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", chat_with(R"("logprobs":true,"stream":true)"));
  server.engine.text(0, "");  // the role goes out
  server.engine.requests[0].sink->on_delta(with_probs("Hx"));
  server.engine.requests[0].sink->on_delta(with_probs("y"));
  server.engine.finish(0);
  answer->run();
  const auto chunks = answer->chunks();
  EXPECT_FALSE(chunks[0]["choices"][0].contains("logprobs"));
  EXPECT_EQ(chunks[1]["choices"][0]["logprobs"]["content"].size(), 2U);
  EXPECT_FALSE(chunks[2]["choices"][0].contains("logprobs"));
}

}  // namespace
}  // namespace coppice::api
