// A turn that goes on is submitted before its whole was rendered, and replaced if that was wrong.
#include "api/chat_guess.h"

#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

constexpr Token kSampledToken = 258;  // no text that is sent gives it

class ChatGuess : public testing::Test {
 protected:
  ChatGuess() {
    server.turns = &turns;
    server.templates.message_end = "</s>";
    server.templates.generation_prompt = "assistant:";
    server.model.n_ctx = 2000;
    messages.push_back({{"role", "system"}, {"content", "Be good."}});
  }

  // The user says something; what the engine was asked for last is answered with `answer`.
  std::shared_ptr<FakeResponder> turn(const std::string& question, const std::string& answer,
                                      const std::string& path = "/v1/chat/completions") {
    messages.push_back({{"role", "user"}, {"content", question}});
    Json body{{"messages", messages}, {"stream", stream}};
    body.update(more);
    auto responder = server.post(path, body.dump());
    if (server.engine.requests.empty()) return responder;
    sched::Finished finished{.stop = sched::StopKind::end_of_generation, .tail = {.text = answer}};
    finished.generated = {kSampledToken};
    finished.end_token = FakeTokenizer::kEos;
    server.engine.requests.back().sink->on_finished(std::move(finished));
    responder->run();
    messages.push_back({{"role", "assistant"}, {"content", answer}});
    return responder;
  }
  // A third question whose prompt will be guessed wrong; and how many requests there were.
  std::size_t before_a_wrong_guess() {
    turn("One?", "1");
    turn("Two?", "2");
    // What only the whole conversation shows: it has six messages now, its shortened form five.
    server.templates.preamble = [](const Json& all) { return all.size() > 5 ? "long;" : ""; };
    messages.push_back({{"role", "user"}, {"content", "Three?"}});
    return server.engine.requests.size();
  }
  double guesses(const std::string& result) {
    const std::string line = "coppice_prompt_guesses_total{result=\"" + result + "\"} ";
    const std::string text = server.metrics.text();
    const auto at = text.find(line);
    return at == std::string::npos ? 0 : std::stod(text.substr(at + line.size()));
  }
  const Tokens& asked(std::size_t i) { return *server.engine.requests.at(i).prompt; }

  session::TurnMemory turns{{}};
  FakeServer server;
  Json messages = Json::array();
  bool stream = false;
  Json more = Json::object();  // fields of the body
};

TEST_F(ChatGuess, B23_GoesOnFromTheLastTurnAndIsConfirmed) {
  turn("One?", "1");
  turn("Two?", "2");
  EXPECT_EQ(guesses("right"), 0) << "so short a conversation is rendered as fast as its parts";
  const auto answer = turn("Three?", "3");
  EXPECT_EQ(guesses("right"), 1);
  EXPECT_EQ(guesses("wrong"), 0);
  ASSERT_EQ(server.engine.requests.size(), 3U);
  EXPECT_TRUE(server.engine.cancelled.empty());
  // Behind the prompt of the turn before: the very tokens that were sampled, then what is new.
  Tokens expected = asked(1);
  expected.push_back(kSampledToken);
  const Tokens rest = server.tokenizer.tokenize("</s>user:Three?</s>assistant:", false, true);
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(asked(2), expected);
  EXPECT_EQ(answer->json()["choices"][0]["message"]["content"], "3");
  EXPECT_EQ(answer->json()["coppice"]["continued"], true);
}

TEST_F(ChatGuess, AWrongOneIsWithdrawnAndNeverShows) {
  const std::size_t before = before_a_wrong_guess();
  const auto last = server.post("/v1/chat/completions", Json{{"messages", messages}}.dump());
  ASSERT_EQ(server.engine.requests.size(), before + 2);
  EXPECT_EQ(guesses("wrong"), 1);
  EXPECT_EQ(server.engine.requests[before + 1].replaces, server.engine.requests[before].id);
  EXPECT_TRUE(server.engine.cancelled.empty()) << "the engine ends what is replaced";
  EXPECT_EQ(asked(before + 1), server.tokenizer.tokenize("long;system:Be good.</s>user:One?</s>assistant:1</s>"
                                                         "user:Two?</s>assistant:2</s>user:Three?</s>assistant:",
                                                         true, true));
  // What the withdrawn request still says is not heard.
  server.engine.text(before, "wrong");
  server.engine.finish(before);
  last->run();
  EXPECT_EQ(last->n_sent, 0);
  server.engine.text(before + 1, "right");
  server.engine.finish(before + 1);
  last->run();
  ASSERT_EQ(last->n_sent, 1);
  EXPECT_EQ(last->json()["choices"][0]["message"]["content"], "right");
  EXPECT_EQ(last->json()["coppice"]["continued"], false);
}

// What an answer has to be is part of its kind, or the rules of an answer with other ones would be guessed.
TEST_F(ChatGuess, RulesOfOtherAnswersAreNotGuessed) {
  turn("One?", "1");
  turn("Two?", "2");
  const Json fields = {{"grammar", "root ::= [a-z]"}, {"reasoning_budget_tokens", 1}, {"tool_choice", "none"}};
  for (const auto& [field, value] : fields.items()) {
    more = {{field, value}};
    turn("Three?", "3");
    EXPECT_EQ(guesses("wrong"), 0) << field;
    const double right = guesses("right");
    turn("Four?", "4");
    EXPECT_EQ(guesses("right"), right + 1) << field;
  }
}

TEST_F(ChatGuess, AReplacementThatIsRefusedEndsTheGuessToo) {
  const std::size_t before = before_a_wrong_guess();
  server.engine.errors[before + 1] = {ErrorKind::overloaded, "full", {}};
  const auto last = server.post("/v1/chat/completions", Json{{"messages", messages}}.dump());
  EXPECT_EQ(last->response.status, 503);
  EXPECT_EQ(server.engine.cancelled, std::vector{server.engine.requests[before].id});
}

TEST_F(ChatGuess, WhatTheTemplateRefusesIsRefusedAfterAGuessToo) {
  turn("One?", "1");
  turn("Two?", "2");
  server.templates.accepts = [](const Json& all) { return all.size() < 6; };
  messages.push_back({{"role", "user"}, {"content", "Three?"}});
  messages.push_back({{"role", "user"}, {"content", "Now?"}});
  const std::size_t before = server.engine.requests.size();
  for (const bool streaming : {false, true}) {
    const auto answer = server.post("/v1/chat/completions", Json{{"messages", messages}, {"stream", streaming}}.dump());
    EXPECT_EQ(answer->response.status, 400);
    EXPECT_EQ(answer->stream_type, "");
  }
  EXPECT_EQ(server.engine.cancelled.size(), server.engine.requests.size() - before) << "nothing runs on";
}

TEST_F(ChatGuess, ExplainRendersTheWhole) {
  turn("One?", "1");
  turn("Two?", "2");
  messages.push_back({{"role", "user"}, {"content", "Three?"}});
  server.post("/v1/explain", Json{{"messages", messages}}.dump());
  EXPECT_EQ(guesses("right"), 0);
}

TEST_F(ChatGuess, StreamsBeginOnceItIsConfirmed) {
  stream = true;
  turn("One?", "1");
  turn("Two?", "2");
  const auto answer = turn("Three?", "3");
  EXPECT_EQ(guesses("right"), 1);
  EXPECT_TRUE(answer->finished);
  EXPECT_NE(answer->written.find("\"3\""), std::string::npos);
}

}  // namespace
}  // namespace coppice::api
