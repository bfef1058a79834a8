// POST /v1/completions, and the reports that all APIs share.
#include "api/completions_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "api/fakes.h"

namespace coppice::api {
namespace {

using sched::StopKind;

TEST(Completions, WholeAnswer) {
  FakeServer server;
  auto answer = server.post("/v1/completions", R"({"prompt":"hi","max_tokens":5,"stop":"end"})");
  EXPECT_EQ(server.engine.requests[0].n_predict, 5);
  EXPECT_EQ(server.engine.requests[0].text.stop, std::vector<std::string>{"end"});
  server.engine.text(0, "hello");
  server.engine.requests[0].sink->on_finished(
      {.stop = StopKind::stop_word, .stop_word = "end", .tail = {.text = "!"}, .report = full_report()});
  answer->run();
  const Json json = answer->json();
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["choices"].dump(), R"([{"index":0,"text":"hello!","logprobs":null,"finish_reason":"stop"}])");
  EXPECT_EQ(json["usage"]["total_tokens"], 108);
}

TEST(Completions, Stream) {
  FakeServer server;
  auto answer =
      server.post("/v1/completions", R"({"prompt":"hi","stream":true,"stream_options":{"include_usage":true}})");
  server.engine.text(0, "hel");
  server.engine.text(0, "");
  server.engine.text(0, "lo");
  server.engine.finish(0, StopKind::length, full_report());
  answer->run();
  const auto chunks = answer->chunks();
  ASSERT_EQ(chunks.size(), 4U);
  EXPECT_EQ(chunks[0]["choices"].dump(), R"([{"index":0,"text":"hel","logprobs":null,"finish_reason":null}])");
  EXPECT_EQ(chunks[1]["choices"].dump(), R"([{"index":0,"text":"lo","logprobs":null,"finish_reason":null}])");
  EXPECT_EQ(chunks[2]["choices"].dump(), R"([{"index":0,"text":"","logprobs":null,"finish_reason":"length"}])");
  EXPECT_TRUE(chunks[2].contains("coppice"));
  EXPECT_EQ(chunks[3]["choices"].dump(), "[]");
  EXPECT_EQ(chunks[3]["usage"]["completion_tokens"], 8);
  EXPECT_EQ(answer->records().back(), "[DONE]");
  EXPECT_TRUE(answer->finished);
}

TEST(Completions, SeveralPrompts) {
  FakeServer server;
  auto answer = server.post("/v1/completions", R"({"prompt":["a",[98],["c",100]],"n":2})");
  ASSERT_EQ(server.engine.requests.size(), 6U);
  EXPECT_EQ(*server.engine.requests[0].prompt, (Tokens{256, 'a'}));
  EXPECT_EQ(*server.engine.requests[2].prompt, (Tokens{'b'}));
  EXPECT_EQ(*server.engine.requests[5].prompt, (Tokens{256, 'c', 'd'}));
  sched::Report report;
  report.prompt_tokens = 10;
  report.reused_slot = 4;
  report.predicted = 3;
  for (std::size_t i : {5U, 3U, 1U, 0U, 2U, 4U}) {
    server.engine.text(i, std::to_string(i));
    server.engine.finish(i, StopKind::end_of_generation, report);
  }
  answer->run();
  const Json json = answer->json();
  ASSERT_EQ(json["choices"].size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(json["choices"][i]["index"], i);
    EXPECT_EQ(json["choices"][i]["text"], std::to_string(i));
    EXPECT_TRUE(json["choices"][i].contains("coppice"));
  }
  // Each prompt counts once, whatever the number of its answers.
  EXPECT_EQ(json["usage"].dump(), R"({"prompt_tokens":30,"completion_tokens":18,"total_tokens":48,)"
                                  R"("prompt_tokens_details":{"cached_tokens":12},"cache_read_input_tokens":12})");
}

TEST(Completions, Logprobs) {
  FakeServer server;
  auto answer = server.post("/v1/completions", R"({"prompt":"hi","logprobs":2,"stream":true})");
  EXPECT_EQ(server.engine.requests[0].probs.n_probs, 2);
  for (const char* text : {"ab", "c"}) {
    sched::TextDelta delta{.text = text};
    delta.probs.push_back({.sampled = {.token = 'x',
                                       .logprob = -std::numeric_limits<float>::infinity(),
                                       .top = {{'y', -0.5}, {'z', -1.5}, {'w', -2.5}}},
                           .piece = text});
    server.engine.requests[0].sink->on_delta(std::move(delta));
  }
  answer->run();
  const auto chunks = answer->chunks();
  EXPECT_EQ(chunks[0]["choices"][0]["logprobs"].dump(),
            R"({"tokens":["ab"],"token_logprobs":[-9999.0],"top_logprobs":[{"y":-0.5,"z":-1.5}],"text_offset":[0]})");
  EXPECT_EQ(chunks[1]["choices"][0]["logprobs"]["text_offset"].dump(), "[2]");
}

TEST(Reports, A13_A14_EveryCountAndReason) {
  FakeServer server;
  auto answer = server.post("/v1/completions", R"({"prompt":"hi","session_id":"s","parent_session_id":"p"})");
  server.engine.finish(0, StopKind::end_of_generation, full_report());
  answer->run();
  EXPECT_EQ(
      answer->json()["coppice"].dump(),
      R"({"session":"s","session_rule":"body.session_id","parent_session":"p","continued":false,"slot":2,"source":"slot",)"
      R"("reused":60,"computed":40,"reason":"diverged","diverged_at":60,"diverged_text":"here",)"
      R"("reused_by_source":{"slot":30,"donor":20,"pool":5,"host":3,"disk":2},)"
      R"("queue_ms":1.0,"restore_ms":2.0,"prefill_ms":80.0,"decode_ms":400.0,"pauses":1,"coalesced":true,"pinned":50,"pins_refused":2,"prepared":15})");
  EXPECT_EQ(answer->json()["timings"].dump(),
            R"({"cache_n":60,"prompt_n":40,"prompt_ms":80.0,"prompt_per_token_ms":2.0,"prompt_per_second":500.0,)"
            R"("predicted_n":8,"predicted_ms":400.0,"predicted_per_token_ms":50.0,"predicted_per_second":20.0})");
}

TEST(Reports, WhatIsAbsentIsNullAndNothingIsInfinite) {
  FakeServer server;
  auto answer = server.post("/v1/completions", R"({"prompt":"hi"})");
  sched::Report report;
  report.prompt_tokens = report.computed = 3;  // in no time at all
  server.engine.finish(0, StopKind::length, report);
  answer->run();
  const Json coppice = answer->json()["coppice"];
  for (const char* name : {"session", "session_rule", "parent_session", "reason", "diverged_at", "diverged_text"}) {
    EXPECT_EQ(coppice[name], nullptr) << name;
  }
  EXPECT_EQ(coppice["source"], "none");
  const Json timings = answer->json()["timings"];
  for (const auto& [name, value] : timings.items()) {
    ASSERT_TRUE(value.is_number()) << name;
    EXPECT_TRUE(std::isfinite(value.get<double>())) << name;
  }
}

}  // namespace
}  // namespace coppice::api
