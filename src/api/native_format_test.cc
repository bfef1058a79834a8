// POST /completion: llama-server's shapes.
#include "api/native_format.h"

#include <gtest/gtest.h>

#include <cmath>

#include "api/fakes.h"

namespace coppice::api {
namespace {

using sched::StopKind;

TEST(Native, WholeAnswer) {
  FakeServer server;
  for (const char* path : {"/completion", "/completions"}) {
    auto answer = server.post(path, R"({"prompt":"hi","n_predict":4,"max_tokens":9,"temperature":0.25})");
    const std::size_t i = server.engine.requests.size() - 1;
    EXPECT_EQ(server.engine.requests[i].n_predict, 4);  // n_predict wins
    server.engine.text(i, "hel\nlo");
    server.engine.finish(i, StopKind::stop_word, full_report());
    answer->run();
    const Json json = answer->json();
    EXPECT_EQ(json["index"], 0);
    EXPECT_EQ(json["content"], "hel\nlo");
    EXPECT_EQ(json["tokens"].dump(), "[]");
    EXPECT_EQ(json["id_slot"], 2);
    EXPECT_EQ(json["stop"], true);
    EXPECT_EQ(json["model"], "test-model");
    EXPECT_EQ(json["tokens_predicted"], 8);
    EXPECT_EQ(json["tokens_evaluated"], 100);
    EXPECT_EQ(json["tokens_cached"], 60);
    EXPECT_EQ(json["generation_settings"]["temperature"], 0.25);
    EXPECT_EQ(json["generation_settings"]["n_predict"], 4);
    EXPECT_EQ(json["prompt"], "<s>hi");
    EXPECT_EQ(json["has_new_line"], true);
    EXPECT_EQ(json["truncated"], false);
    EXPECT_EQ(json["stop_type"], "word");
    EXPECT_EQ(json["timings"]["prompt_n"], 40);
    EXPECT_EQ(json["coppice"]["computed"], 40);
    EXPECT_FALSE(json.contains("completion_probabilities"));
  }
}

TEST(Native, StopTypes) {
  const std::pair<StopKind, const char*> cases[] = {
      {StopKind::end_of_generation, "eos"}, {StopKind::stop_word, "word"}, {StopKind::length, "limit"}};
  for (const auto& [stop, name] : cases) {
    FakeServer server;
    auto answer = server.post("/completion", R"({"prompt":"hi"})");
    sched::Report report;
    report.prompt_tokens = 120;
    report.predicted = 8;  // the context of 128 is full
    server.engine.requests[0].sink->on_finished({.stop = stop, .stop_word = "w", .report = report});
    answer->run();
    EXPECT_EQ(answer->json()["stop_type"], name);
    EXPECT_EQ(answer->json()["stopping_word"], "w");
    EXPECT_EQ(answer->json()["truncated"], stop == StopKind::length);
  }
}

TEST(Native, Stream) {
  FakeServer server;
  auto answer = server.post("/completion", R"({"prompt":"hi","stream":true,"return_progress":true})");
  EXPECT_TRUE(server.engine.requests[0].text.return_tokens);
  server.engine.requests[0].sink->on_progress({.total = 3, .reused = 1, .processed = 2});
  server.engine.requests[0].sink->on_delta({.text = "a\nb", .tokens = {97, 10, 98}});
  server.engine.requests[0].sink->on_delta({.text = "", .tokens = {195}});  // half a character
  server.engine.requests[0].sink->on_finished(
      {.stop = StopKind::end_of_generation, .tail = {.text = "?", .tokens = {63}}, .report = full_report()});
  answer->run();
  const auto chunks = answer->chunks();
  ASSERT_EQ(chunks.size(), 4U);
  EXPECT_EQ(chunks[0]["prompt_progress"].dump(), R"({"total":3,"cache":1,"processed":2,"time_ms":0.0})");
  EXPECT_EQ(chunks[1].dump(), R"({"index":0,"content":"a\nb","tokens":[97,10,98],"stop":false,)"
                              R"("tokens_predicted":3,"tokens_evaluated":3})");
  EXPECT_EQ(chunks[2]["tokens_predicted"], 4);
  EXPECT_EQ(chunks[3]["content"], "?");
  EXPECT_EQ(chunks[3]["stop"], true);
  EXPECT_EQ(chunks[3]["has_new_line"], true);
  EXPECT_EQ(chunks[3]["coppice"]["slot"], 2);
  EXPECT_NE(answer->records().back(), "[DONE]");
  EXPECT_TRUE(answer->finished);
}

TEST(Native, PromptsInAllForms) {
  const std::pair<const char*, std::vector<Tokens>> cases[] = {
      {R"("ab")", {{256, 'a', 'b'}}},
      {R"([1,2])", {{1, 2}}},
      {R"([1,"a",2])", {{1, 'a', 2}}},  // no BOS: it starts with an id
      {R"(["a",2])", {{256, 'a', 2}}},
      {R"(["a"])", {{256, 'a'}}},
      {R"(["a","b"])", {{256, 'a'}, {256, 'b'}}},
      {R"([[1,2],"a",["b",3]])", {{1, 2}, {256, 'a'}, {256, 'b', 3}}},
      {R"({"prompt_string":"a"})", {{256, 'a'}}},
      {R"([{"prompt_string":"a","multimodal_data":[]},[1]])", {{256, 'a'}, {1}}},
      {R"("<|call|>")", {{256, 258}}},
  };
  for (const auto& [prompt, expected] : cases) {
    FakeServer server;
    server.post("/completion", std::string("{\"prompt\":") + prompt + "}");
    std::vector<Tokens> prompts;
    for (const auto& request : server.engine.requests) prompts.push_back(*request.prompt);
    EXPECT_EQ(prompts, expected) << prompt;
  }
}

TEST(Native, SeveralAnswersAreAList) {
  FakeServer server;
  auto answer = server.post("/completion", R"({"prompt":["a","b"],"return_tokens":true})");
  for (std::size_t i : {0U, 1U}) {
    server.engine.requests[i].sink->on_delta({.text = "x", .tokens = {'x'}});
    server.engine.finish(i);
  }
  answer->run();
  ASSERT_EQ(answer->json().size(), 2U);
  EXPECT_EQ(answer->json()[1]["index"], 1);
  EXPECT_EQ(answer->json()[1]["prompt"], "<s>b");
  EXPECT_EQ(answer->json()[1]["tokens"].dump(), "[120]");
}

TEST(Native, ResponseFields) {
  FakeServer server;
  auto answer =
      server.post("/completion", R"({"prompt":"a","response_fields":["content","timings/cache_n","no","content/x"]})");
  server.engine.text(0, "x");
  server.engine.finish(0, StopKind::length, full_report());
  answer->run();
  EXPECT_EQ(answer->response.body, R"({"content":"x","timings/cache_n":60})");
}

TEST(Native, Probabilities) {
  for (const bool post_sampling : {false, true}) {
    FakeServer server;
    auto answer = server.post("/completion", std::string(R"({"prompt":"a","n_probs":1,"post_sampling_probs":)") +
                                                 (post_sampling ? "true}" : "false}"));
    EXPECT_EQ(server.engine.requests[0].probs.n_probs, 1);
    EXPECT_EQ(server.engine.requests[0].probs.post_sampling, post_sampling);
    sched::TextDelta delta{.text = "b"};
    delta.probs.push_back({.sampled = {.token = 'b', .logprob = 0, .top = {{'c', -1}, {'d', -2}}}, .piece = "b"});
    server.engine.requests[0].sink->on_delta(delta);
    server.engine.finish(0);
    answer->run();
    const Json probs = answer->json()["completion_probabilities"];
    if (!post_sampling) {
      EXPECT_EQ(probs.dump(), R"([{"id":98,"token":"b","bytes":[98],"logprob":0.0,"top_logprobs":)"
                              R"([{"id":99,"token":"c","bytes":[99],"logprob":-1.0}]}])");
    } else {
      EXPECT_EQ(probs[0]["prob"], 1.0);
      EXPECT_NEAR(probs[0]["top_probs"][0]["prob"].get<double>(), std::exp(-1.0), 1e-6);
      EXPECT_FALSE(probs[0].contains("logprob"));
    }
  }
}

TEST(Native, LogprobsIsAnAliasOfNProbsAndZeroIsNone) {
  FakeServer server;
  server.post("/completion", R"({"prompt":"a","logprobs":3})");
  server.post("/completion", R"({"prompt":"a","logprobs":0})");
  server.post("/completion", R"({"prompt":"a","n_probs":0})");
  EXPECT_EQ(server.engine.requests[0].probs.n_probs, 3);
  EXPECT_EQ(server.engine.requests[1].probs.n_probs, 0);
  EXPECT_EQ(server.engine.requests[2].probs.n_probs, 0);
}

}  // namespace
}  // namespace coppice::api
