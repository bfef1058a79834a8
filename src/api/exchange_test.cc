#include "api/exchange.h"

#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

using sched::StopKind;

constexpr const char* kStream = R"({"prompt":"hi","stream":true})";

Json seed_of(const sched::Request& request) {
  const auto& body = static_cast<const FakeSampler&>(*request.sampler).body;
  return body.contains("seed") ? body["seed"] : Json("none");
}

TEST(Exchange, A1_A5_A7_A12_PlacementReachesTheEngine) {
  FakeServer server;
  server.post("/completion", R"({"prompt":"hi","session_id":"s","id_slot":3,"cache_prompt":false,"shared_pool_slot":1,
                                "shared_prefix_n_tokens":2,"parent_session_id":"up","pool":"base"})");
  const sched::Placement& placement = server.engine.requests.at(0).placement;
  EXPECT_EQ(placement.session, "s");
  EXPECT_EQ(placement.session_rule, "body.session_id");
  EXPECT_EQ(placement.parent_session, "up");
  EXPECT_EQ(placement.pool, "base");
  EXPECT_EQ(placement.id_slot, SlotId{3});
  EXPECT_EQ(placement.shared_pool_slot, SlotId{1});
  EXPECT_EQ(placement.shared_prefix_n_tokens, 2);
  EXPECT_FALSE(placement.cache_prompt);
  EXPECT_EQ(placement.ns, NamespaceId{});
  EXPECT_FALSE(placement.is_fork);
}

constexpr const char* kOneCall =
    R"({"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}],
        "parallel_tool_calls":false,"n":2,"stream":)";

TEST(Exchange, AnAnswerWithItsOneCallIsConcluded) {
  for (const bool stream : {false, true}) {
    FakeServer server;
    const auto client = server.post("/v1/chat/completions", std::string(kOneCall) + (stream ? "true}" : "false}"));
    const RequestId first = server.engine.requests.at(0).id;
    for (const char* text : {"Tf", "A{}", "Tf"}) server.engine.text(0, text);
    for (const char* text : {"Tf", "A{}"}) server.engine.text(1, text);
    client->run();
    EXPECT_EQ(server.engine.concluded, std::vector<RequestId>{first}) << "stream: " << stream;
    server.engine.text(0, "A{\"more\":1}");
    server.engine.finish(0, StopKind::enough);
    server.engine.finish(1);
    client->run();
    EXPECT_EQ(server.engine.concluded.size(), 1U);
    EXPECT_TRUE(server.engine.cancelled.empty());
    if (!stream) {
      const Json choice = client->json()["choices"][0];
      EXPECT_EQ(choice["finish_reason"], "tool_calls");
      EXPECT_EQ(choice["message"]["tool_calls"].size(), 1U);
      continue;
    }
    int begun = 0;
    Json reason;
    for (const Json& chunk : client->chunks()) {
      const Json& choice = chunk["choices"].at(0);
      if (choice["index"] != 0) continue;
      if (!choice["finish_reason"].is_null()) reason = choice["finish_reason"];
      if (choice["delta"].contains("tool_calls")) begun += choice["delta"]["tool_calls"][0].contains("id") ? 1 : 0;
    }
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(reason, "tool_calls");
  }
}

TEST(Exchange, A3_A11_WithoutFieldsPlacementIsInert) {
  FakeServer server;
  server.post("/completion", R"({"prompt":"hi"})");
  const sched::Placement& placement = server.engine.requests.at(0).placement;
  EXPECT_EQ(placement.session, "");
  EXPECT_EQ(placement.session_rule, "");
  EXPECT_FALSE(placement.id_slot);
  EXPECT_FALSE(placement.shared_pool_slot);
  EXPECT_EQ(placement.shared_prefix_n_tokens, 0);
  EXPECT_EQ(placement.pool, "");
  EXPECT_EQ(placement.parent_session, "");
  EXPECT_FALSE(server.engine.requests.at(0).make_pool);
  EXPECT_TRUE(placement.cache_prompt);
  EXPECT_EQ(placement.ns, NamespaceId{});
}

TEST(Exchange, SessionOfTheHeader) {
  FakeServer server;
  auto answer = server.post("/completion", R"({"prompt":"hi"})", {{"x-session-id", "h"}});
  EXPECT_EQ(server.engine.requests.at(0).placement.session, "h");
  server.engine.finish(0);
  answer->run();
  EXPECT_EQ(answer->json()["coppice"]["session_rule"], "header.x-session-id");
}

TEST(Exchange, A3_WithoutInferenceOnlyTheBodyNamesASession) {
  FakeServer server;
  server.session_inference = false;
  server.post("/completion", R"({"prompt":"hi"})", {{"x-session-id", "h"}});
  EXPECT_EQ(server.engine.requests.at(0).placement.session, "");
  server.post("/completion", R"({"prompt":"hi","session_id":"b"})", {{"x-session-id", "h"}});
  EXPECT_EQ(server.engine.requests.at(1).placement.session, "b");
}

TEST(Exchange, LimitsOfGeneration) {
  FakeServer server;
  server.default_n_predict = 50;
  server.post("/completion", R"({"prompt":"hi","t_max_predict_ms":20})");
  server.post("/completion", R"({"prompt":"hi","n_predict":-1,"t_max_predict_ms":-1})");
  server.post("/completion", R"({"prompt":"hi","n_predict":0})");
  EXPECT_EQ(server.engine.requests[0].n_predict, 50);
  EXPECT_EQ(server.engine.requests[0].predict_limit, std::chrono::milliseconds(20));
  EXPECT_EQ(server.engine.requests[1].n_predict, 50);
  EXPECT_EQ(server.engine.requests[1].predict_limit, Duration{0});
  EXPECT_EQ(server.engine.requests[2].n_predict, 0);
}

TEST(Exchange, HeadersGoOutAsSoonAsTheEngineTookTheRequest) {
  FakeServer server;
  auto answer = server.post("/completion", kStream);
  EXPECT_EQ(answer->stream_type, "text/event-stream; charset=utf-8");
  EXPECT_EQ(answer->n_sent, 0);
  EXPECT_FALSE(answer->finished);
}

TEST(Exchange, RefusalsOfTheEngineAreProperHttpErrors) {
  struct Case {
    Error error;
    int status;
    const char *code, *retry_after;
  };
  const Case cases[] = {
      {{ErrorKind::overloaded, "queue full", ""}, 503, "overloaded", "1"},
      {{ErrorKind::unavailable, "shutting down", ""}, 503, "unavailable", ""},
      {{ErrorKind::context_overflow, "no", ""}, 400, "context_length_exceeded", ""},
      {{ErrorKind::invalid_request, "no such slot", "id_slot"}, 400, nullptr, ""},
      {{ErrorKind::internal, "bug", ""}, 500, nullptr, ""},
  };
  for (const Case& c : cases) {
    for (const char* body : {kStream, R"({"prompt":"hi"})"}) {
      FakeServer server;
      server.engine.errors[0] = c.error;
      auto answer = server.post("/completion", body);
      EXPECT_EQ(answer->response.status, c.status) << c.error.message;
      EXPECT_EQ(answer->json()["error"]["code"], c.code == nullptr ? Json(nullptr) : Json(c.code));
      EXPECT_EQ(answer->stream_type, "");
      std::string retry;
      for (const auto& [name, value] : answer->response.headers) retry = name == "Retry-After" ? value : retry;
      EXPECT_EQ(retry, c.retry_after);
    }
  }
  FakeServer server;  // the engine knows best what would have fitted
  server.engine.errors[0] = {ErrorKind::context_overflow, "prompt is too long: 3 tokens > 2 maximum", "prompt"};
  EXPECT_EQ(server.post("/completion", kStream)->json()["error"]["message"],
            "prompt is too long: 3 tokens > 2 maximum");
}

TEST(Exchange, FailureBeforeAnAnswerIsAnHttpError) {
  FakeServer server;
  auto answer = server.post("/v1/completions", R"({"prompt":"hi"})");
  server.engine.text(0, "half");
  server.engine.requests[0].sink->on_failed({ErrorKind::internal, "decode failed", ""});
  answer->run();
  EXPECT_EQ(answer->response.status, 500);
  EXPECT_EQ(answer->json()["error"]["message"], "decode failed");
  EXPECT_EQ(answer->n_sent, 1);
  EXPECT_TRUE(server.engine.cancelled.empty());  // it has ended by itself
}

TEST(Exchange, FailureWithinAStreamIsSaidAndEndsIt) {
  for (const char* path : {"/completion", "/v1/completions"}) {
    FakeServer server;
    auto answer = server.post(path, kStream);
    server.engine.text(0, "half");
    server.engine.requests[0].sink->on_failed({ErrorKind::internal, "decode failed", ""});
    answer->run();
    const auto records = answer->records();
    ASSERT_GE(records.size(), 2U);
    EXPECT_EQ(records[1], R"({"error":{"message":"decode failed","type":"server_error","param":null,"code":null}})");
    EXPECT_EQ(records.back() == "[DONE]", std::string_view(path) == "/v1/completions");
    EXPECT_TRUE(answer->finished);
    EXPECT_EQ(answer->n_sent, 0);
  }
  FakeServer server;
  auto chat = server.post("/v1/chat/completions", R"({"messages":[],"stream":true})");
  server.engine.requests[0].sink->on_failed({ErrorKind::cancelled, "shutting down", ""});
  chat->run();
  EXPECT_EQ(chat->records(),
            (std::vector<std::string>{
                R"({"error":{"message":"shutting down","type":"unavailable_error","param":null,"code":"cancelled"}})",
                "[DONE]"}));
  EXPECT_TRUE(chat->finished);
}

TEST(Exchange, NAnswersAreForksWithTheirOwnSeeds) {
  FakeServer server;
  auto answer =
      server.post("/v1/completions", R"({"prompt":"hi","n":3,"seed":4294967293,"session_id":"s","id_slot":1})");
  const auto& requests = server.engine.requests;
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_FALSE(requests[0].placement.is_fork);
  EXPECT_EQ(requests[0].placement.session, "s");
  EXPECT_EQ(requests[0].placement.id_slot, SlotId{1});
  for (std::size_t i : {1U, 2U}) {
    EXPECT_TRUE(requests[i].placement.is_fork);
    EXPECT_EQ(requests[i].placement.session, "");  // the session stays with the first
    EXPECT_FALSE(requests[i].placement.id_slot);
    EXPECT_EQ(requests[i].prompt, requests[0].prompt);
  }
  EXPECT_EQ(seed_of(requests[0]), 4294967293U);
  EXPECT_EQ(seed_of(requests[1]), 4294967294U);
  EXPECT_EQ(seed_of(requests[2]), 0);  // not 2^32 - 1, which means random
  for (std::size_t i : {2U, 0U, 1U}) server.engine.finish(i);
  EXPECT_EQ(answer->n_sent, 0);
  answer->run();
  ASSERT_EQ(answer->json()["choices"].size(), 3U);
  EXPECT_EQ(answer->json()["choices"][2]["coppice"]["session"], "s");
}

TEST(Exchange, WithoutASeedEachAnswerIsRandom) {
  FakeServer server;
  server.post("/completion", R"({"prompt":"hi","n_cmpl":2,"n":5})");
  server.post("/completion", R"({"prompt":"hi","n":2,"seed":-1})");
  ASSERT_EQ(server.engine.requests.size(), 4U);  // n_cmpl wins
  EXPECT_EQ(seed_of(server.engine.requests[1]), "none");
  EXPECT_EQ(seed_of(server.engine.requests[3]), -1);
}

TEST(Exchange, StreamOfSeveralAnswersNamesTheirIndex) {
  FakeServer server;
  auto answer = server.post("/v1/chat/completions", R"({"messages":[],"stream":true,"n":2})");
  server.engine.text(1, "b");
  server.engine.text(0, "a");
  server.engine.finish(1);
  answer->run();
  EXPECT_FALSE(answer->finished);
  server.engine.finish(0);
  answer->run();
  EXPECT_TRUE(answer->finished);
  std::string order;
  for (const Json& chunk : answer->chunks()) order += chunk["choices"][0]["index"].dump();
  EXPECT_EQ(order, "110010");
}

TEST(Exchange, IfOneOfNIsRefusedTheOthersAreCancelled) {
  FakeServer server;
  server.engine.errors[2] = {ErrorKind::overloaded, "queue full", ""};
  auto answer = server.post("/v1/completions", R"({"prompt":"hi","n":3,"stream":true})");
  EXPECT_EQ(answer->response.status, 503);
  EXPECT_EQ(answer->stream_type, "");
  ASSERT_EQ(server.engine.requests.size(), 2U);
  EXPECT_EQ(server.engine.cancelled,
            (std::vector<RequestId>{server.engine.requests[0].id, server.engine.requests[1].id}));
  for (auto& request : server.engine.requests) request.sink->on_failed({ErrorKind::cancelled, "", ""});
  answer->run();
  EXPECT_EQ(answer->n_sent, 1);
}

TEST(Exchange, IfOneOfNFailsTheOthersAreCancelled) {
  FakeServer server;
  auto answer = server.post("/v1/completions", R"({"prompt":"hi","n":3})");
  server.engine.finish(0);
  server.engine.requests[1].sink->on_failed({ErrorKind::internal, "bug", ""});
  server.engine.finish(2);
  answer->run();
  EXPECT_EQ(answer->response.status, 500);
  EXPECT_EQ(answer->n_sent, 1);
  EXPECT_EQ(server.engine.cancelled, std::vector<RequestId>{server.engine.requests[2].id});
}

TEST(Exchange, AClientThatLeavesCancelsItsRequests) {
  for (const char* body : {R"({"prompt":"hi","n":2})", R"({"prompt":"hi","n":2,"stream":true})"}) {
    FakeServer server;
    auto answer = server.post("/v1/completions", body);
    server.engine.finish(0);
    answer->run();
    const std::string before = answer->written;
    answer->client_leaves();
    EXPECT_EQ(server.engine.cancelled, std::vector<RequestId>{server.engine.requests[1].id});
    server.engine.text(1, "late");
    server.engine.requests[1].sink->on_failed({ErrorKind::cancelled, "", ""});
    answer->run();
    EXPECT_EQ(answer->n_sent, 0);
    EXPECT_EQ(answer->written, before);
    EXPECT_FALSE(answer->finished);
  }
}

TEST(Exchange, AClientThatReadsTooSlowlyIsCancelled) {
  FakeServer server;
  auto answer = server.post("/v1/completions", kStream);
  answer->reader_stuck = true;
  server.engine.text(0, "a");
  server.engine.text(0, "b");
  answer->run();
  EXPECT_EQ(server.engine.cancelled, std::vector<RequestId>{server.engine.requests[0].id});
  EXPECT_EQ(answer->written.find("\"text\":\"b\""), std::string::npos);
}

TEST(Exchange, NothingIsCancelledAfterItsEndAndNothingLeaks) {
  FakeServer server;
  auto answer = server.post("/v1/completions", kStream);
  server.engine.finish(0);
  answer->run();
  answer->client_leaves();
  EXPECT_TRUE(server.engine.cancelled.empty());
  // With the engine's sink gone nobody holds the exchange, and so nobody but this test the responder.
  server.engine.requests.clear();
  EXPECT_EQ(answer.use_count(), 1);
}

TEST(Exchange, SilentStreamsArePinged) {
  FakeServer server;
  const auto answer = server.post("/completion", kStream);
  EXPECT_EQ(answer->make_keepalive(), ": ping\n\n");
  EXPECT_EQ(answer->keepalive_interval, std::chrono::seconds(30));
  const auto pings = [&](const char* interval) {
    return server
        .post("/completion", R"({"prompt":"hi","stream":true,"sse_ping_interval":)" + std::string(interval) + "}")
        ->keepalive_interval.count();
  };
  EXPECT_EQ(pings("5"), 5);
  EXPECT_EQ(pings("-1"), 0);
  EXPECT_EQ(pings("0"), 0);
  EXPECT_EQ(server.post("/completion", R"({"prompt":"hi"})")->make_keepalive, nullptr);
}

TEST(Exchange, OutputThatIsNoUtf8IsReplaced) {
  FakeServer server;
  for (const char* path : {"/completion", "/v1/completions"}) {
    for (const char* body : {kStream, R"({"prompt":[255],"n_probs":1})"}) {
      auto answer = server.post(path, body);
      sched::TextDelta delta{.text = "a\xff"};
      delta.probs.push_back({.sampled = {.token = 255, .logprob = -1, .top = {{255, -1}}}, .piece = "\xff"});
      server.engine.requests.back().sink->on_delta(delta);
      server.engine.requests.back().sink->on_finished({.tail = {.text = "\xc3"}});
      answer->run();
      const std::string all = answer->written + answer->response.body;
      EXPECT_NE(all.find("a\xEF\xBF\xBD"), std::string::npos) << path;
      EXPECT_EQ(all.find('\xff'), std::string::npos) << path;
      EXPECT_EQ(answer->response.status, 200);
    }
  }
}

}  // namespace
}  // namespace coppice::api
