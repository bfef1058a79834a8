// POST /v1/responses: the exact shapes of its events and answers.
#include "api/responses_format.h"

#include <gtest/gtest.h>

#include "api/errors.h"
#include "api/fakes.h"
#include "api/sse_for_test.h"

namespace coppice::api {
namespace {

using sched::StopKind;

std::string request(const std::string& fields) {
  return R"({"input":"hi")" + (fields.empty() ? "" : "," + fields) + "}";
}

constexpr const char* kTools =
    R"("stream":true,"tools":[{"type":"function","name":"grep"},{"type":"custom","name":"patch"},)"
    R"({"type":"namespace","name":"mcp__x","tools":[{"type":"function","name":"run"}]}])";

// Runs one stream to its end.
std::vector<SseEvent> stream(FakeServer& server, const std::string& fields, const std::vector<const char*>& texts,
                             StopKind stop = StopKind::end_of_generation) {
  auto answer = server.post("/v1/responses", request(fields));
  EXPECT_EQ(answer->response.body, "");
  EXPECT_EQ(answer->stream_type, "text/event-stream; charset=utf-8");
  for (const char* text : texts) server.engine.text(server.engine.requests.size() - 1, text);
  server.engine.finish(server.engine.requests.size() - 1, stop, full_report());
  answer->run();
  EXPECT_TRUE(answer->finished);
  return sse_events(answer->written);
}

// An event without what is the same for all, ids without the part that comes from the response.
std::string told(const SseEvent& event) {
  EXPECT_EQ(event.name, event.data.value("type", ""));
  Json data = event.data;
  data.erase("type");
  data.erase("sequence_number");
  if (data.contains("response")) data["response"] = data["response"]["status"];
  std::string text = data.dump();
  for (const char* prefix : {"msg_", "rs_", "fc_", "ctc_"}) {
    for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
      const std::size_t begin = at + std::string(prefix).size();
      text.erase(begin, 32);
    }
  }
  return event.name.substr(event.name.find('.') + 1) + " " + text;
}

void expect_told(const std::vector<SseEvent>& events, const std::vector<const char*>& expected) {
  ASSERT_EQ(events.size(), expected.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(told(events[i]), expected[i]) << i;
    EXPECT_EQ(events[i].data["sequence_number"], i);
  }
}

TEST(Responses, StreamOfText) {
  FakeServer server;
  expect_told(
      stream(server, R"("stream":true)", {"hel", "lo"}),
      {
          R"(created {"response":"in_progress"})",
          R"(in_progress {"response":"in_progress"})",
          R"(output_item.added {"output_index":0,"item":{"id":"msg__0","type":"message","status":"in_progress","role":"assistant","content":[]}})",
          R"(content_part.added {"item_id":"msg__0","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}})",
          R"(output_text.delta {"item_id":"msg__0","output_index":0,"content_index":0,"delta":"hel","logprobs":[]})",
          R"(output_text.delta {"item_id":"msg__0","output_index":0,"content_index":0,"delta":"lo","logprobs":[]})",
          R"(output_text.done {"item_id":"msg__0","output_index":0,"content_index":0,"text":"hello","logprobs":[]})",
          R"(content_part.done {"item_id":"msg__0","output_index":0,"content_index":0,"part":{"type":"output_text","text":"hello","annotations":[],"logprobs":[]}})",
          R"(output_item.done {"output_index":0,"item":{"id":"msg__0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[],"logprobs":[]}]}})",
          R"(completed {"response":"completed"})",
      });
}

TEST(Responses, StreamOfReasoningAndACall) {
  FakeServer server;
  expect_told(
      stream(server, kTools, {"Rwhy", "Tgrep", "A{\"x\"", "A:1}"}),
      {
          R"(created {"response":"in_progress"})",
          R"(in_progress {"response":"in_progress"})",
          R"(output_item.added {"output_index":0,"item":{"id":"rs__0","type":"reasoning","status":"in_progress","summary":[],"content":[],"encrypted_content":"rs__0"}})",
          R"(content_part.added {"item_id":"rs__0","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":""}})",
          R"(reasoning_text.delta {"item_id":"rs__0","output_index":0,"content_index":0,"delta":"why"})",
          R"(reasoning_text.done {"item_id":"rs__0","output_index":0,"content_index":0,"text":"why"})",
          R"(content_part.done {"item_id":"rs__0","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":"why"}})",
          R"(output_item.done {"output_index":0,"item":{"id":"rs__0","type":"reasoning","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"why"}],"encrypted_content":"rs__0"}})",
          R"(output_item.added {"output_index":1,"item":{"id":"fc__1","type":"function_call","status":"in_progress","call_id":"call_0","name":"grep","arguments":""}})",
          R"(function_call_arguments.delta {"item_id":"fc__1","output_index":1,"delta":"{\"x\""})",
          R"(function_call_arguments.delta {"item_id":"fc__1","output_index":1,"delta":":1}"})",
          R"(function_call_arguments.done {"item_id":"fc__1","output_index":1,"name":"grep","arguments":"{\"x\":1}"})",
          R"(output_item.done {"output_index":1,"item":{"id":"fc__1","type":"function_call","status":"completed","call_id":"call_0","name":"grep","arguments":"{\"x\":1}"}})",
          R"(completed {"response":"completed"})",
      });
}

// Codex and the AI SDK send back the summary, never the text.
TEST(Responses, ReasoningIsItsOwnSummaryWhenOneIsWanted) {
  FakeServer server;
  const auto events = stream(server, R"("stream":true,"reasoning":{"summary":"auto"})", {"Rwhy", "text"});
  const std::vector<SseEvent> reasoning(events.begin() + 4, events.begin() + 9);
  const char* expected[] = {
      R"(reasoning_summary_part.added {"item_id":"rs__0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}})",
      R"(reasoning_summary_text.delta {"item_id":"rs__0","output_index":0,"summary_index":0,"delta":"why"})",
      R"(reasoning_text.delta {"item_id":"rs__0","output_index":0,"content_index":0,"delta":"why"})",
      R"(reasoning_summary_text.done {"item_id":"rs__0","output_index":0,"summary_index":0,"text":"why"})",
      R"(reasoning_summary_part.done {"item_id":"rs__0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"why"}})",
  };
  for (std::size_t i = 0; i < reasoning.size(); ++i) EXPECT_EQ(told(reasoning[i]), expected[i]);
  EXPECT_EQ(events.back().data["response"]["output"][0]["summary"].dump(), R"([{"type":"summary_text","text":"why"}])");
}

TEST(Responses, CallsOfCustomAndNamespaceTools) {
  FakeServer server;
  const auto events = stream(server, kTools, {"Tpatch", "A{\"input\":", "A\"a\\", "Anb\"}", "Tmcp__x__run"});
  std::vector<SseEvent> calls(events.begin() + 2, events.end() - 1);
  for (SseEvent& event : calls) event.data["sequence_number"] = &event - calls.data();
  expect_told(
      calls,
      {
          R"(output_item.added {"output_index":0,"item":{"id":"ctc__0","type":"custom_tool_call","status":"in_progress","call_id":"call_0","name":"patch","input":""}})",
          R"(custom_tool_call_input.delta {"item_id":"ctc__0","output_index":0,"delta":"a"})",
          R"(custom_tool_call_input.delta {"item_id":"ctc__0","output_index":0,"delta":"\nb"})",
          R"(custom_tool_call_input.done {"item_id":"ctc__0","output_index":0,"input":"a\nb"})",
          R"(output_item.done {"output_index":0,"item":{"id":"ctc__0","type":"custom_tool_call","status":"completed","call_id":"call_0","name":"patch","input":"a\nb"}})",
          R"(output_item.added {"output_index":1,"item":{"id":"fc__1","type":"function_call","status":"in_progress","call_id":"call_1","namespace":"mcp__x","name":"run","arguments":""}})",
          R"(function_call_arguments.delta {"item_id":"fc__1","output_index":1,"delta":"{}"})",
          R"(function_call_arguments.done {"item_id":"fc__1","output_index":1,"name":"run","arguments":"{}"})",
          R"(output_item.done {"output_index":1,"item":{"id":"fc__1","type":"function_call","status":"completed","call_id":"call_1","namespace":"mcp__x","name":"run","arguments":"{}"}})",
      });
}

TEST(Responses, IdsAreUniqueAndOfTheirResponse) {
  FakeServer server;
  const auto one = stream(server, R"("stream":true)", {"Rwhy", "text"});
  const auto two = stream(server, R"("stream":true)", {"text"});
  const Json first = one.back().data["response"], second = two.back().data["response"];
  const std::string id = first["id"];
  EXPECT_NE(id, second["id"]);
  EXPECT_EQ(first["output"][0]["id"], "rs_" + id.substr(5) + "_0");
  EXPECT_EQ(first["output"][1]["id"], "msg_" + id.substr(5) + "_1");
  EXPECT_EQ(first["output"][0]["encrypted_content"], first["output"][0]["id"]) << "what comes back names the turn";
}

TEST(Responses, TheFinalResponse) {
  FakeServer server;
  const auto events = stream(server,
                             R"("stream":true,"session_id":"s","metadata":{"a":"b"},"reasoning":{"effort":"low"},)"
                             R"("instructions":"brief","store":false,"max_output_tokens":50)",
                             {"Rwhy", "hello"});
  const Json response = events.back().data["response"];
  EXPECT_EQ(response["object"], "response");
  EXPECT_EQ(response["created_at"], 1234);
  EXPECT_EQ(response["model"], "test-model");
  EXPECT_EQ(response["status"], "completed");
  EXPECT_TRUE(response["error"].is_null());
  EXPECT_TRUE(response["incomplete_details"].is_null());
  EXPECT_EQ(response["metadata"].dump(), R"({"a":"b"})");
  EXPECT_EQ(response["reasoning"].dump(), R"({"effort":"low","summary":null})");
  EXPECT_EQ(response["text"].dump(), R"({"format":{"type":"text"}})");
  EXPECT_EQ(response["instructions"], "brief");
  EXPECT_EQ(response["max_output_tokens"], 50);
  EXPECT_EQ(response["store"], false);
  EXPECT_EQ(response["tools"].dump(), "[]");
  EXPECT_EQ(response["usage"].dump(),
            R"({"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":8,)"
            R"("output_tokens_details":{"reasoning_tokens":3},"total_tokens":108})");
  EXPECT_EQ(response["coppice"]["session"], "s");
  EXPECT_EQ(response["coppice"]["reused"], 60);
  EXPECT_EQ(response["timings"]["cache_n"], 60);
  EXPECT_FALSE(response.contains("prompt_cache_diagnostics"));
  ASSERT_EQ(response["output"].size(), 2U);
  EXPECT_EQ(response["output"][1]["content"][0]["text"], "hello");
  EXPECT_EQ(events[0].data["response"]["usage"], nullptr);
  EXPECT_EQ(events[0].data["response"]["id"], response["id"]);
}

TEST(Responses, WholeAnswerIsTheFinalResponse) {
  FakeServer server;
  auto answer = server.post("/v1/responses", request(""));
  server.engine.text(0, "hel");
  server.engine.text(0, "lo");
  server.engine.finish(0, StopKind::end_of_generation, full_report());
  answer->run();
  const Json response = answer->json();
  EXPECT_EQ(response["status"], "completed");
  EXPECT_EQ(response["output"][0]["content"][0]["text"], "hello");
  EXPECT_EQ(response["usage"]["total_tokens"], 108);
  EXPECT_TRUE(response["id"].get<std::string>().starts_with("resp_"));
}

TEST(Responses, CutShortIsIncomplete) {
  FakeServer server;
  const auto events = stream(server, R"("stream":true)", {"Rwhy", "hel"}, StopKind::length);
  EXPECT_EQ(events.back().name, "response.incomplete");
  const Json response = events.back().data["response"];
  EXPECT_EQ(response["status"], "incomplete");
  EXPECT_EQ(response["incomplete_details"].dump(), R"({"reason":"max_output_tokens"})");
  EXPECT_EQ(response["output"][0]["status"], "completed");
  EXPECT_EQ(response["output"][1]["status"], "incomplete");
}

TEST(Responses, SilenceIsBrokenByInProgressWithANumberOfItsOwn) {
  FakeServer server;
  auto answer = server.post("/v1/responses", request(R"("stream":true)"));
  EXPECT_EQ(answer->keepalive_interval, std::chrono::seconds(30));
  answer->write(answer->make_keepalive());
  server.engine.text(0, "a");
  answer->run();
  answer->write(answer->make_keepalive());
  server.engine.finish(0);
  answer->run();
  const auto events = sse_events(answer->written);
  EXPECT_EQ(events[2].name, "response.in_progress");
  EXPECT_EQ(events[2].data["response"]["status"], "in_progress");
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].data["sequence_number"], i);
  EXPECT_EQ(answer->make_keepalive(), "") << "after the end";
}

TEST(Responses, AFailureInAStreamSaysWhy) {
  FakeServer server;
  struct Case {
    Error error;
    const char* code;
  };
  const Case cases[] = {
      {context_overflow(200, 128), "context_length_exceeded"},
      {{ErrorKind::internal, "broken", ""}, "server_error"},
      {{ErrorKind::overloaded, "full", ""}, "overloaded"},
  };
  for (const Case& c : cases) {
    auto answer = server.post("/v1/responses", request(R"("stream":true)"));
    server.engine.requests.back().sink->on_failed(c.error);
    answer->run();
    EXPECT_TRUE(answer->finished);
    const auto events = sse_events(answer->written);
    EXPECT_EQ(events.back().name, "response.failed");
    const Json response = events.back().data["response"];
    EXPECT_EQ(response["status"], "failed");
    EXPECT_EQ(response["error"]["code"], c.code);
    EXPECT_EQ(response["error"]["message"], c.error.message);
  }
}

TEST(Responses, ErrorsBeforeAStreamAreOpenAIs) {
  FakeServer server;
  auto answer = server.post("/v1/responses", R"({"stream":true,"input":")" + std::string(500, 'x') + R"("})");
  EXPECT_EQ(answer->response.status, 400);
  const Json error = answer->json()["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  const std::string message = error["message"];
  EXPECT_NE(message.find("prompt is too long: "), std::string::npos) << message;
  EXPECT_NE(message.find("maximum context length is 128 tokens"), std::string::npos) << message;

  server.templates.accepts = [](auto&) { return false; };
  const Json refused = server.post("/v1/responses", request(R"("stream":true)"))->json()["error"];
  EXPECT_EQ(refused["param"], "input");
  EXPECT_EQ(refused["type"], "invalid_request_error");
}

TEST(Responses, OneAnswerIsGivenAndRolesReachTheTemplate) {
  FakeServer server;
  server.post("/v1/responses", R"({"n":3,"instructions":"brief","input":[{"role":"developer","content":"d"},
      {"role":"user","content":[{"type":"input_text","text":"hi"}]}],"max_output_tokens":7})");
  ASSERT_EQ(server.engine.requests.size(), 1U);
  EXPECT_EQ(server.engine.requests[0].n_predict, 7);
  EXPECT_EQ(*server.engine.requests[0].prompt,
            server.tokenizer.tokenize("system:brief\ndeveloper:d\nuser:hi\n", true, true));
}

}  // namespace
}  // namespace coppice::api
