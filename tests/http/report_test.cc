// Spec A13 and A14 end to end: what each completion route says of a request, whole and as the end of a stream.
#include "support.h"

namespace coppice::http_test {
namespace {

struct RouteCase {
  const char* name;
  const char* path;
  Json (*body)();
};

void PrintTo(const RouteCase& c, std::ostream* out) { *out << c.name; }

Json native_body() { return {{"prompt", random_tokens(1, 20)}, {"n_predict", 3}, {"ignore_eos", true}}; }
Json completions_body() { return {{"prompt", random_tokens(1, 20)}, {"max_tokens", 3}, {"ignore_eos", true}}; }
Json chat_body() {
  return {{"messages", messages({system("The code of Zorbin is 4821."), user("What is the code of Zorbin?")})},
          {"max_tokens", 3},
          {"ignore_eos", true}};
}

class Reports : public ServerTest, public ::testing::WithParamInterface<RouteCase> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(serve({"-np", "2"}));
    body_ = GetParam().body();
    body_["temperature"] = 0;
    body_["session_id"] = "agent-1";
    body_["parent_session_id"] = "agent-0";
    is_native_ = std::string(GetParam().path) == "/completion";
  }

  void check_times(const Json& object) const {
    for (const char* field : {"queue_ms", "restore_ms", "prefill_ms", "decode_ms"}) {
      ASSERT_TRUE(object["coppice"][field].is_number()) << field;
      EXPECT_GE(object["coppice"][field].get<double>(), 0) << field;
    }
    EXPECT_GT(object["coppice"]["prefill_ms"].get<double>(), 0);
    const Json& timings = object["timings"];
    EXPECT_EQ(timings["prompt_ms"], object["coppice"]["prefill_ms"]);
    EXPECT_EQ(timings["predicted_ms"], object["coppice"]["decode_ms"]);
    for (const char* field :
         {"prompt_per_token_ms", "prompt_per_second", "predicted_per_token_ms", "predicted_per_second"}) {
      EXPECT_TRUE(timings[field].is_number()) << field;
    }
  }

  // The first request computes everything, the second one all but what the slot holds of it.
  void check(const Json& object, bool again) const {
    SCOPED_TRACE(object.dump());
    const TokenPos n_prompt = prompt_tokens();
    const TokenPos reused = again ? n_prompt - 1 : 0;
    const Json& c = object.at("coppice");
    EXPECT_EQ(c["session"], "agent-1");
    EXPECT_EQ(c["session_rule"], "body.session_id");
    EXPECT_EQ(c["parent_session"], "agent-0");
    EXPECT_EQ(c["slot"], 1);
    EXPECT_EQ(c["source"], again ? "slot" : "none");
    EXPECT_EQ(c["reused"], reused);
    EXPECT_EQ(c["computed"], n_prompt - reused);
    EXPECT_EQ(c["reason"], again ? Json(nullptr) : Json("new"));
    EXPECT_EQ(c["diverged_at"], nullptr);
    EXPECT_EQ(c["diverged_text"], nullptr);
    EXPECT_EQ(c["pauses"], 0);
    const Json by_source = {{"slot", reused}, {"donor", 0}, {"pool", 0}, {"host", 0}, {"disk", 0}};
    EXPECT_EQ(c["reused_by_source"], by_source);
    EXPECT_EQ(object["timings"]["cache_n"], reused);
    EXPECT_EQ(object["timings"]["prompt_n"], n_prompt - reused);
    EXPECT_EQ(object["timings"]["predicted_n"], 3);
    check_times(object);
    if (!is_native_) return;
    EXPECT_EQ(object["id_slot"], 1);
    EXPECT_EQ(object["tokens_evaluated"], n_prompt);
    EXPECT_EQ(object["tokens_cached"], reused);
    EXPECT_EQ(object["tokens_predicted"], 3);
    EXPECT_EQ(object["stop_type"], "limit");
  }

  void check_usage(const Json& object, bool again) const {
    const TokenPos n_prompt = prompt_tokens(), cached = again ? n_prompt - 1 : 0;
    const Json expected = {{"prompt_tokens", n_prompt},
                           {"completion_tokens", 3},
                           {"total_tokens", n_prompt + 3},
                           {"prompt_tokens_details", {{"cached_tokens", cached}}},
                           {"cache_read_input_tokens", cached}};
    EXPECT_EQ(object["usage"], expected);
  }

  TokenPos prompt_tokens() const { return body_.contains("messages") ? length(tokens_of(body_["messages"])) : 20; }

  Json body_;
  bool is_native_ = false;
};

TEST_P(Reports, A13_A14_WholeResponse) {
  for (const bool again : {false, true}) {
    const Json answer = client().ask(GetParam().path, body_);
    check(answer, again);
    if (!is_native_) check_usage(answer, again);
  }
}

TEST_P(Reports, A13_A14_EndOfStream) {
  body_["stream_options"] = {{"include_usage", true}};
  for (const bool again : {false, true}) {
    const Events events = collect(client().stream(GetParam().path, body_));
    ASSERT_EQ(events.status, 200);
    ASSERT_GE(events.list.size(), 2U);
    EXPECT_TRUE(events.complete);
    check(events.last(), again);
    if (is_native_) {
      EXPECT_EQ(events.last()["stop"], true);
      continue;
    }
    EXPECT_TRUE(events.done);
    EXPECT_EQ(events.last()["choices"], Json::array());
    check_usage(events.last(), again);
    const Json& before = events.list[events.list.size() - 2];
    EXPECT_EQ(before["choices"][0]["finish_reason"], "length");
    check(before, again);  // for clients that do not ask for usage
  }
}

INSTANTIATE_TEST_SUITE_P(Routes, Reports,
                         ::testing::Values(RouteCase{"native", "/completion", native_body},
                                           RouteCase{"completions", "/v1/completions", completions_body},
                                           RouteCase{"chat", "/v1/chat/completions", chat_body}),
                         [](const auto& c) { return std::string(c.param.name); });

class Reasons : public ServerTest {};

TEST_F(Reasons, A14_ADivergedSessionPromptSaysWhere) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2"}));
  const auto ask = [&](const std::string& text) {
    return client().ask("/completion", {{"prompt", text}, {"n_predict", 1}, {"session_id", "S"}, {"temperature", 0}});
  };
  const std::string before = "The lamp stands near the old chair.\nToday is ", after = ".\nThe code of Zorbin is 4821.";
  const std::string one = before + "Monday" + after, two = before + "Friday" + after;
  const TokenPos at = common_prefix(tokenize(one), tokenize(two));
  ask(one);
  const Json report = ask(two).at("coppice");
  EXPECT_EQ(report["reason"], "diverged");
  EXPECT_EQ(report["diverged_at"], at);
  EXPECT_EQ(report["reused"], at);
  EXPECT_NE(report["diverged_text"].get<std::string>().find("Friday"), std::string::npos) << report["diverged_text"];
  EXPECT_EQ(metric("coppice_prefix_misses_total{reason=\"diverged\"}"), 1);
}

TEST_F(Reasons, A14_AnEvictedSessionSaysSo) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "512", "--cache-ram", "0"}));
  Json mine = greedy(random_tokens(1, 100), 1), other = greedy(random_tokens(2, 500), 1);
  mine["session_id"] = "mine";
  other["session_id"] = "other";
  client().ask("/completion", mine);
  client().ask("/completion", other);
  const Json report = client().ask("/completion", mine).at("coppice");
  EXPECT_EQ(report["reason"], "evicted");
  EXPECT_EQ(report["computed"], 100);
  EXPECT_EQ(metric("coppice_sequences_evicted_total") + metric("coppice_sequences_spilled_total"), 2);
}

}  // namespace
}  // namespace coppice::http_test
