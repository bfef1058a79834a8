#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "engine/demo_model_for_test.h"

namespace coppice::engine {
namespace {

using testing::ask;
using testing::demo;

const std::string kQuestion = ask("The code of Zorbin is 4821.");

Tokens generate(const Json& body, int n = 12) {
  const auto sampler = demo().sampler(body);
  return demo().generate(*sampler, demo().tokenizer->tokenize(kQuestion, false, true), n);
}

Token token_of(const std::string& text) {
  const Tokens tokens = demo().tokenizer->tokenize(text, false, true);
  EXPECT_EQ(tokens.size(), 1U) << text;
  return tokens.at(0);
}

// One step after kQuestion.
Sampled sample_once(const Json& body, const ProbsOptions& probs) {
  const SeqId seq{3};
  demo().runner->clear(seq);
  const std::int32_t index = demo().eval(seq, demo().tokenizer->tokenize(kQuestion, false, true));
  const auto sampler = demo().sampler(body);
  Sampled result = demo().runner->sample(*sampler, index, probs);
  demo().runner->clear(seq);
  return result;
}

TEST(LlamaSampler, RepeatsItselfWithTheSameSeedOnly) {
  const Json hot = {{"temperature", 5}, {"top_k", 0}, {"min_p", 0}, {"top_p", 1}};
  Json one = hot, two = hot;
  one["seed"] = 1;
  two["seed"] = 2;
  EXPECT_EQ(generate(one), generate(one));
  EXPECT_NE(generate(one), generate(two));
}

TEST(LlamaSampler, IsGreedyAtTemperatureZero) {
  const std::string text = demo().tokenizer->text(generate({{"temperature", 0}}), false);
  EXPECT_EQ(text, "OK, noted.");
  EXPECT_EQ(generate({{"temperature", 0}, {"seed", 7}}), generate({{"temperature", 0}, {"seed", 8}}));
  EXPECT_EQ(generate({{"top_k", 1}, {"temperature", 3}}), generate({{"temperature", 0}}));
}

TEST(LlamaSampler, ObeysAGrammar) {
  const Json body = {{"temperature", 0}, {"grammar", R"(root ::= "blue" | "red")"}};
  EXPECT_THAT(demo().generate_text(body, kQuestion, 20), ::testing::AnyOf("blue", "red"));
  const Json schema = {
      {"type", "object"},
      {"properties", {{"ok", {{"type", "boolean"}}}, {"n", {{"type", "integer"}, {"maximum", 9}, {"minimum", 0}}}}},
      {"required", {"ok", "n"}}};
  for (const Json& b : {Json{{"json_schema", schema}},
                        Json{{"response_format", {{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}}}},
                        Json{{"response_format", {{"type", "json_object"}, {"schema", schema}}}}}) {
    Json greedy = b;
    greedy["temperature"] = 0;
    const Json answer = Json::parse(demo().generate_text(greedy, kQuestion, 60));
    EXPECT_TRUE(answer.at("ok").is_boolean());
    EXPECT_TRUE(answer.at("n").is_number_integer());
  }
  EXPECT_EQ(demo().generate_text({{"temperature", 0}, {"response_format", {{"type", "text"}}}}, kQuestion, 20),
            "OK, noted.");
}

TEST(LlamaSampler, ChatConstraintGoesBeforeTheBody) {
  const ChatConstraint constraint{.grammar_kind = ChatConstraint::GrammarKind::output_format,
                                  .grammar = R"(root ::= "from the template")"};
  const Json body = {{"temperature", 0}, {"grammar", R"(root ::= "from the body")"}};
  EXPECT_EQ(demo().generate_text(body, kQuestion, 30, constraint), "from the template");
}

// The grammar covers the generation prompt as well, which the template has already put.
TEST(LlamaSampler, AGrammarOfTheTemplateIsFedTheGenerationPrompt) {
  ChatConstraint constraint{.grammar_kind = ChatConstraint::GrammarKind::output_format,
                            .grammar = R"(root ::= "say:" "done")",
                            .generation_prompt = "say:"};
  EXPECT_EQ(demo().generate_text({{"temperature", 0}}, kQuestion, 30, constraint), "done");
  constraint.grammar_kind = ChatConstraint::GrammarKind::user;
  EXPECT_EQ(demo().generate_text({{"temperature", 0}}, kQuestion, 30, constraint), "say:done");
  // Feeding it an end token would abort the process.
  constraint.grammar_kind = ChatConstraint::GrammarKind::tool_calls;
  constraint.generation_prompt = "<|im_end|>";
  EXPECT_FALSE(demo().samplers->make(Json::object(), constraint).has_value());
  constraint.generation_prompt = "something else";
  EXPECT_FALSE(demo().samplers->make(Json::object(), constraint).has_value());
}

TEST(LlamaSampler, ALazyGrammarWaitsForItsWord) {
  ChatConstraint constraint{.grammar_kind = ChatConstraint::GrammarKind::tool_calls,
                            .grammar = R"(root ::= "noted" "!!")",
                            .grammar_lazy = true,
                            .grammar_triggers = {{.type = 1, .value = "noted"}}};
  EXPECT_EQ(demo().generate_text({{"temperature", 0}}, kQuestion, 30, constraint), "OK, noted!!");
  constraint.grammar_triggers = {{.type = 1, .value = "never said"}};
  EXPECT_EQ(demo().generate_text({{"temperature", 0}}, kQuestion, 30, constraint), "OK, noted.");
  const Json body = {{"temperature", 0},
                     {"grammar", constraint.grammar},
                     {"grammar_lazy", true},
                     {"grammar_triggers", {{{"type", 1}, {"value", "noted"}}}}};
  EXPECT_EQ(demo().generate_text(body, kQuestion, 30), "OK, noted!!");
}

TEST(LlamaSampler, AReasoningBudgetForcesTheEndOfThinking) {
  const ChatConstraint constraint{.generation_prompt = "<think>",
                                  .thinking_start_tag = "<think>",
                                  .thinking_end_tags = {"</think>"},
                                  .reasoning_budget_tokens = 2,
                                  .reasoning_budget_message = " enough"};
  const std::string text = demo().generate_text({{"temperature", 0}}, kQuestion, 16, constraint);
  EXPECT_NE(text.find(" enough</think>"), std::string::npos) << text;
  const Json body = {{"temperature", 0},
                     {"reasoning_budget_tokens", 0},
                     {"reasoning_budget_start_tag", "OK"},
                     {"reasoning_budget_end_tag", "</think>"}};
  EXPECT_EQ(demo().generate_text(body, kQuestion, 16).rfind("OK</think>", 0), 0U);
}

TEST(LlamaSampler, LogitBiasBansAndForces) {
  const Token usual = generate({{"temperature", 0}}, 1).at(0);
  const std::string id = std::to_string(usual);
  for (const Json& bias :
       {Json{{id, -100}}, Json{{id, false}}, Json::array({{usual, false}}), Json::array({{usual, -1e300}})}) {
    const Tokens out = generate({{"temperature", 0}, {"logit_bias", bias}});
    EXPECT_EQ(std::ranges::count(out, usual), 0) << bias;
  }
  const Token forced = token_of("a");
  EXPECT_EQ(generate({{"logit_bias", {{std::to_string(forced), 1e300}}}}, 3), Tokens(3, forced));
  EXPECT_EQ(generate({{"logit_bias", Json::array({{"a", 100}})}}, 3), Tokens(3, forced)) << "text instead of an id";
}

TEST(LlamaSampler, IgnoreEosGoesOn) {
  const Tokens out = generate({{"temperature", 0}, {"ignore_eos", true}}, 60);
  ASSERT_EQ(out.size(), 60U);
  EXPECT_FALSE(demo().tokenizer->is_end_of_generation(out.back()));
}

TEST(LlamaSampler, PenaltiesSeeThePrompt) {
  const Json body = {{"temperature", 0}, {"repeat_last_n", -1}, {"presence_penalty", 1000}};
  const Tokens prompt = demo().tokenizer->tokenize(kQuestion, false, true);
  for (Token token : generate(body, 8)) EXPECT_EQ(std::ranges::count(prompt, token), 0) << token;
}

TEST(LlamaSampler, ReportsProbabilitiesBeforeTheChain) {
  const Sampled cold = sample_once({{"temperature", 0}}, {.n_probs = 5});
  const Sampled hot = sample_once({{"temperature", 3}, {"seed", 3}}, {.n_probs = 5});
  ASSERT_EQ(cold.top.size(), 5U);
  EXPECT_EQ(cold.top[0].token, cold.token);
  EXPECT_FLOAT_EQ(cold.top[0].logprob, cold.logprob);
  EXPECT_TRUE(std::ranges::is_sorted(cold.top, std::greater{}, &TokenProb::logprob));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(cold.top[i].token, hot.top[i].token);
    EXPECT_FLOAT_EQ(cold.top[i].logprob, hot.top[i].logprob) << "whatever the temperature";
  }
  const Sampled all = sample_once(Json::object(), {.n_probs = 1'000'000});
  double sum = 0;
  for (const TokenProb& p : all.top) sum += std::exp(p.logprob);
  EXPECT_EQ(all.top.size(), static_cast<std::size_t>(demo().tokenizer->n_vocab()));
  EXPECT_NEAR(sum, 1, 1e-3);
  const Sampled none = sample_once({{"temperature", 0}}, {});
  EXPECT_TRUE(none.top.empty());
  EXPECT_EQ(none.logprob, 0);
}

TEST(LlamaSampler, ReportsProbabilitiesAfterTheChain) {
  const Sampled one = sample_once({{"temperature", 0}}, {.n_probs = 5, .post_sampling = true});
  ASSERT_EQ(one.top.size(), 1U) << "nothing else is left";
  EXPECT_EQ(one.top[0].token, one.token);
  EXPECT_NEAR(std::exp(one.logprob), 1, 1e-6);
  const Sampled three = sample_once({{"temperature", 5}, {"top_k", 3}, {"top_p", 1}, {"min_p", 0}, {"seed", 1}},
                                    {.n_probs = 5, .post_sampling = true});
  ASSERT_EQ(three.top.size(), 3U);
  double sum = 0;
  for (const TokenProb& p : three.top) sum += std::exp(p.logprob);
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_TRUE(std::ranges::any_of(
      three.top, [&](const TokenProb& p) { return p.token == three.token && p.logprob == three.logprob; }));
}

// BUG: where nothing is left, llama.cpp picks a forbidden token, and then throws, or aborts if that one ends
// generation.
TEST(LlamaSampler, EndsWhereNothingIsAllowed) {
  const Token end = token_of("<|im_end|>");
  Json ban_all = Json::array();
  for (Token t = 0; t < demo().tokenizer->n_vocab(); ++t) ban_all.push_back({t, false});
  for (const Json& body :
       {Json{{"logit_bias", ban_all}}, Json{{"grammar", R"(root ::= "a")"}, {"logit_bias", ban_all}},
        Json{{"grammar", "root ::= <[99999999]>"}}, Json{{"grammar", R"(root ::= "OK")"}, {"ignore_eos", true}},
        Json{{"grammar", R"(root ::= "OK")"}, {"ignore_eos", true}, {"samplers", "kt"}, {"top_k", 2000}},
        Json{{"grammar", R"(root ::= "OK")"}, {"ignore_eos", true}, {"mirostat", 1}},
        Json{{"grammar", R"(root ::= "OK")"}, {"ignore_eos", true}, {"mirostat", 2}},
        Json{{"grammar", R"(root ::= "OK")"}, {"ignore_eos", true}, {"samplers", "a"}}}) {
    const auto sampler = demo().sampler(body);
    const Tokens out = demo().generate(*sampler, demo().tokenizer->tokenize(kQuestion, false, true), 30);
    EXPECT_EQ(out.back(), end) << body.dump().substr(0, 200);
    // And it stays ended.
    const std::int32_t index = demo().eval(SeqId{3}, {1, 2, 3});
    EXPECT_EQ(demo().runner->sample(*sampler, index, {.n_probs = 3}).token, end);
    demo().runner->clear(SeqId{3});
  }
}

TEST(LlamaSampler, CanBeMadeOnManyThreads) {
  const Json body = {{"json_schema", {{"type", "object"}, {"properties", {{"a", {{"type", "string"}}}}}}},
                     {"dry_multiplier", 1}};
  std::vector<std::jthread> threads;
  std::atomic<int> made = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) made += demo().samplers->make(body, {}).has_value() ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(made, 20);
}

}  // namespace
}  // namespace coppice::engine
