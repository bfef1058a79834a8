#include "api/next_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "api/fakes.h"

namespace coppice::api {
namespace {

// A template that asks for a thought, which it does not show of earlier answers.
class NextTurnsTest : public testing::Test {
 protected:
  void SetUp() override {
    server.model.n_ctx = 1000;
    server.templates.generation_prompt = "think:";
    server.templates.message_end = "</s>";
    server.idle_prefill = {.allowed = true, .after_calls = true, .after_answers = true, .tokens_min = 1};
  }

  static Json chat(std::string session, Json more = Json::object()) {
    Json body = {{"messages", Json::array({{{"role", "user"}, {"content", "Hi"}}})},
                 {"session_id", std::move(session)}};
    body.update(more);
    return body;
  }
  // Sends it and has it answered with `text`.
  std::shared_ptr<FakeResponder> turn(const Json& body, std::string text = "Yes",
                                      sched::StopKind stop = sched::StopKind::end_of_generation) {
    auto responder = server.post("/v1/chat/completions", body.dump());
    const Tokens generated = server.tokenizer.tokenize(text, false, true);
    server.engine.requests.back().sink->on_finished(
        {.stop = stop, .tail = {.text = std::move(text)}, .report = {}, .generated = generated});
    responder->run();
    return responder;
  }
  void settle() { server.context().next_turns.wait(); }
  std::string text(const sched::Request& request) { return server.tokenizer.text(*request.prompt, true); }
  int count(const std::string& result) {
    const std::string line = "coppice_next_turns_total{result=\"" + result + "\"} ", all = server.metrics.text();
    const auto at = all.find(line);
    return at == std::string::npos ? 0 : std::stoi(all.substr(at + line.size()));
  }

  FakeServer server;
};

TEST_F(NextTurnsTest, B25_WhatTheNextPromptBeginsWithIsHandedToTheEngine) {
  turn(chat("s", {{"cache_salt", "pepper"}}));
  settle();
  ASSERT_EQ(server.engine.requests.size(), 2U);
  const sched::Request& prepared = server.engine.requests[1];
  EXPECT_EQ(text(prepared), "<s>user:Hi</s>assistant:Yes</s>");
  EXPECT_TRUE(prepared.background);
  EXPECT_EQ(prepared.n_predict, 0);
  EXPECT_TRUE(prepared.placement.cache_prompt);
  EXPECT_EQ(prepared.placement.session, "s");
  EXPECT_EQ(prepared.placement.ns, server.engine.requests[0].placement.ns);
  EXPECT_EQ(count("submitted"), 1);
  prepared.sink->on_finished({});
  EXPECT_EQ(count("prepared"), 1);
}

TEST_F(NextTurnsTest, B25_StreamsAndAllDialectsToo) {
  turn(chat("s", {{"stream", true}}));
  settle();
  EXPECT_EQ(server.engine.requests.size(), 2U);
  for (const char* path : {"/v1/messages", "/v1/responses"}) {
    const std::size_t before = server.engine.requests.size();
    const Json body = {{"messages", Json::array({{{"role", "user"}, {"content", "Hi"}}})},
                       {"input", "Hi"},
                       {"max_tokens", 100},
                       {"session_id", path}};
    const auto responder = server.post(path, body.dump());
    server.engine.text(before, "Yes");
    server.engine.finish(before);
    responder->run();
    settle();
    ASSERT_EQ(server.engine.requests.size(), before + 2) << path;
    EXPECT_EQ(text(server.engine.requests.back()), "<s>user:Hi</s>assistant:Yes</s>") << path;
  }
}

TEST_F(NextTurnsTest, B25_AfterToolCallsTheirResultsAreExpected) {
  turn(chat("s"), "Tlook_up");
  settle();
  ASSERT_EQ(server.engine.requests.size(), 2U);
  EXPECT_EQ(text(server.engine.requests[1]), "<s>user:Hi</s>assistant:</s>");
  EXPECT_EQ(server.templates.rendered["messages"].back()["role"], "tool");
  EXPECT_EQ(server.templates.rendered["messages"].back()["name"], "look_up");
}

TEST_F(NextTurnsTest, B25_WhatIsHeldCostsNothing) {
  server.templates.generation_prompt = "assistant:";
  server.templates.message_end = "";
  server.idle_prefill.tokens_min = 6;
  turn(chat("s"));  // what the engine computed is the beginning of what comes next, but for "user:"
  settle();
  EXPECT_EQ(server.engine.requests.size(), 1U) << text(server.engine.requests.back());
  EXPECT_EQ(count("held"), 1);
}

TEST_F(NextTurnsTest, B25_OnlyWhereServerAndRequestWantIt) {
  turn(chat("out", {{"idle_prefill", false}}));
  turn(chat("no trace", {{"cache_prompt", false}}));
  turn(chat("cut off"), "Yes", sched::StopKind::length);
  turn(chat("continued", {{"messages", Json::array({{{"role", "assistant"}, {"content", "H"}}})}}));
  settle();
  EXPECT_EQ(server.engine.requests.size(), 4U);
}

TEST_F(NextTurnsTest, B25_OffIsOffAndAskingForItGoesBeforeTheServersOwnJudgement) {
  server.idle_prefill = {.allowed = true, .after_calls = true, .after_answers = false, .tokens_min = 1};
  turn(chat("a"));
  settle();
  EXPECT_EQ(server.engine.requests.size(), 1U);
  turn(chat("b", {{"idle_prefill", true}}));
  settle();
  EXPECT_EQ(server.engine.requests.size(), 3U);
}

TEST_F(NextTurnsTest, B25_OffWhateverARequestSays) {
  server.idle_prefill = {};
  turn(chat("a", {{"idle_prefill", true}}));
  settle();
  EXPECT_EQ(server.engine.requests.size(), 1U);
}

TEST_F(NextTurnsTest, B25_WhatTheTemplateDoesNotTakeIsNotPrepared) {
  server.templates.accepts = [](const Json& all) { return all.size() < 2; };
  turn(chat("s"));
  settle();
  EXPECT_EQ(server.engine.requests.size(), 1U);
  EXPECT_EQ(count("unknown"), 1);
}

// The thread is stopped in the template, at its first conversation with an answer.
class StuckNextTurnsTest : public NextTurnsTest {
 protected:
  void SetUp() override {
    NextTurnsTest::SetUp();
    server.templates.accepts = [this](const Json& all) {
      if (all.size() > 1 && !stuck_.exchange(true)) {
        arrived_.count_down();
        let_go_.wait();
      }
      return true;
    };
    turn(chat("first"));
    arrived_.wait();
  }
  void TearDown() override { let_go(); }
  void let_go() {
    if (!std::exchange(gone_, true)) let_go_.count_down();
  }

 private:
  std::atomic<bool> stuck_{false};
  bool gone_ = false;
  std::latch arrived_{1}, let_go_{1};
};

TEST_F(StuckNextTurnsTest, B25_ASessionThatGoesOnNeedsNoPreparation) {
  turn(chat("second"));
  server.post("/v1/chat/completions", chat("first").dump());
  server.post("/v1/chat/completions", chat("second").dump());
  const std::size_t before = server.engine.requests.size();
  let_go();
  settle();
  EXPECT_EQ(server.engine.requests.size(), before);
  EXPECT_EQ(count("dropped"), 2);
}

TEST_F(StuckNextTurnsTest, B25_SessionsOfOthersAreNotMeant) {
  server.post("/v1/chat/completions", chat("first", {{"cache_salt", "theirs"}}).dump());
  const std::size_t before = server.engine.requests.size();
  let_go();
  settle();
  EXPECT_EQ(server.engine.requests.size(), before + 1);
}

TEST_F(StuckNextTurnsTest, B25_OfASessionTheNewestTurnWaits) {
  turn(chat("s"), "old");
  turn(chat("s"), "new");
  const std::size_t before = server.engine.requests.size();
  let_go();
  settle();
  ASSERT_EQ(server.engine.requests.size(), before + 2);
  EXPECT_EQ(text(server.engine.requests.back()), "<s>user:Hi</s>assistant:new</s>");
}

TEST_F(StuckNextTurnsTest, B25_OnlySoManyWaitAndTheGaugeShowsThem) {
  const std::size_t n = server.limits.next_turns_max + 3;
  for (std::size_t i = 0; i < n; ++i) turn(chat("s" + std::to_string(i)));
  EXPECT_EQ(count("dropped"), 3);
  EXPECT_NE(server.metrics.text().find("coppice_next_turns_queued 17\n"), std::string::npos);
  const std::size_t before = server.engine.requests.size();
  let_go();
  settle();
  EXPECT_EQ(server.engine.requests.size(), before + 1 + server.limits.next_turns_max);
  EXPECT_EQ(server.engine.requests.back().placement.session, "s" + std::to_string(n - 1));
  EXPECT_NE(server.metrics.text().find("coppice_next_turns_queued 0\n"), std::string::npos);
}

TEST_F(StuckNextTurnsTest, B25_NothingIsSubmittedOnceItHasStopped) {
  turn(chat("s"));
  const std::size_t before = server.engine.requests.size();
  NextTurns& next_turns = server.context().next_turns;
  std::thread stopper([&] { next_turns.stop(); });
  while (server.metrics.text().find("coppice_next_turns_queued 1\n") == std::string::npos) std::this_thread::yield();
  let_go();
  stopper.join();
  turn(chat("late"));
  next_turns.wait();
  EXPECT_EQ(server.engine.requests.size(), before + 1) << "the late turn's own";
}

}  // namespace
}  // namespace coppice::api
