// What the options of a request do to the prompt and to the constraint on the answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "chat/chat_test_support.h"

namespace coppice::chat {
namespace {

using testing::ask;
using testing::describe;
using ::testing::HasSubstr;
using testing::must_render;
using ::testing::Not;
using testing::parse_whole;
using testing::weather_tools;
using GrammarKind = engine::ChatConstraint::GrammarKind;

std::unique_ptr<Templates> fresh_qwen(TemplateSettings settings = testing::counting_ids()) {
  return testing::templates_of(testing::template_text("Qwen-Qwen3-0.6B"), std::move(settings));
}

TEST(RenderOptions, PlainChatHasNoGrammar) {
  const Prompt prompt = must_render(*fresh_qwen(), ask("Hi."));
  EXPECT_EQ(prompt.text, "<|im_start|>user\nHi.<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(prompt.constraint.grammar_kind, GrammarKind::none);
  EXPECT_EQ(prompt.constraint.generation_prompt, "<|im_start|>assistant\n");
  EXPECT_EQ(prompt.constraint.thinking_start_tag, "<think>");
  EXPECT_THAT(prompt.constraint.thinking_end_tags, ::testing::ElementsAre("</think>"));
  EXPECT_EQ(prompt.constraint.reasoning_budget_tokens, -1);
}

TEST(RenderOptions, ToolChoiceDecidesTheGrammar) {
  const auto templates = fresh_qwen();
  const Json tools = {{"tools", weather_tools()}};
  const auto with = [&](const Json& choice) {
    Json more = tools;
    more["tool_choice"] = choice;
    return must_render(*templates, ask("Hi.", more));
  };
  const Prompt automatic = with("auto");
  EXPECT_EQ(automatic.constraint.grammar_kind, GrammarKind::tool_calls);
  EXPECT_TRUE(automatic.constraint.grammar_lazy);
  EXPECT_THAT(automatic.text, HasSubstr("get_time"));
  EXPECT_EQ(with("none").constraint.grammar_kind, GrammarKind::none);
  const Prompt required = with("required");
  EXPECT_EQ(required.constraint.grammar_kind, GrammarKind::tool_calls);
  EXPECT_FALSE(required.constraint.grammar_lazy);
  EXPECT_THAT(required.constraint.grammar, HasSubstr("get_time"));
}

// Only what the model may call changes: a prompt with fewer tools would share nothing with the turns before.
TEST(RenderOptions, AForcedToolKeepsThePrompt) {
  const auto templates = fresh_qwen();
  const Prompt automatic = must_render(*templates, ask("Hi.", {{"tools", weather_tools()}}));
  Json more = {{"tools", weather_tools()},
               {"tool_choice", {{"type", "function"}, {"function", {{"name", "get_weather"}}}}}};
  const Prompt forced = must_render(*templates, ask("Hi.", more));
  EXPECT_EQ(forced.text, automatic.text);
  EXPECT_FALSE(forced.constraint.grammar_lazy);
  EXPECT_THAT(forced.constraint.grammar, HasSubstr("get_weather"));
  EXPECT_THAT(forced.constraint.grammar, Not(HasSubstr("get_time")));
}

TEST(RenderOptions, ParallelToolCallsCanBeForbidden) {
  const auto templates = fresh_qwen();
  const auto grammar = [&](bool parallel) {
    const Json more = {{"tools", weather_tools()}, {"tool_choice", "required"}, {"parallel_tool_calls", parallel}};
    return must_render(*templates, ask("Hi.", more)).constraint.grammar;
  };
  EXPECT_NE(grammar(true), grammar(false));
}

TEST(RenderOptions, SchemasAndGrammars) {
  const auto templates = fresh_qwen();
  const Json schema = Json::parse(R"({"type":"object","properties":{"answer_word":{"type":"string"}}})");
  const Prompt by_format = must_render(
      *templates, ask("Hi.", {{"response_format", {{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}}}}));
  EXPECT_EQ(by_format.constraint.grammar_kind, GrammarKind::output_format);
  EXPECT_THAT(by_format.constraint.grammar, HasSubstr("answer_word"));
  const Prompt by_field = must_render(*templates, ask("Hi.", {{"json_schema", schema}}));
  EXPECT_EQ(by_field.constraint.grammar, by_format.constraint.grammar);
  EXPECT_EQ(must_render(*templates, ask("Hi.", {{"response_format", {{"type", "text"}}}})).constraint.grammar, "");

  const Prompt own = must_render(*templates, ask("Hi.", {{"grammar", "root ::= \"yes\""}}));
  EXPECT_EQ(own.constraint.grammar_kind, GrammarKind::user);
  EXPECT_EQ(own.constraint.grammar, "root ::= \"yes\"");
}

// Kimi's parser has no place for a schema; the grammar then covers the generated text alone.
TEST(RenderOptions, SchemasWorkWithoutTheTemplatesHelp) {
  const auto kimi = testing::templates_of(testing::template_text("moonshotai-Kimi-K2"));
  const Prompt prompt = must_render(*kimi, ask("Hi.", {{"response_format", {{"type", "json_object"}}}}));
  EXPECT_EQ(prompt.constraint.grammar_kind, GrammarKind::user);
  EXPECT_THAT(prompt.constraint.grammar, HasSubstr("root ::="));
}

TEST(RenderOptions, ThinkingCanBeSwitchedOff) {
  const std::string off = "<|im_start|>user\nHi.<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
  const auto templates = fresh_qwen();
  EXPECT_EQ(must_render(*templates, ask("Hi.", {{"reasoning_effort", "none"}})).text, off);
  EXPECT_EQ(must_render(*templates, ask("Hi.", {{"enable_thinking", false}})).text, off);
  EXPECT_EQ(must_render(*templates, ask("Hi.", {{"chat_template_kwargs", {{"enable_thinking", false}}}})).text, off);

  TemplateSettings settings;
  settings.template_kwargs["enable_thinking"] = "false";  // what --reasoning off does
  const auto quiet = fresh_qwen(settings);
  EXPECT_EQ(must_render(*quiet, ask("Hi.")).text, off);
  EXPECT_NE(must_render(*quiet, ask("Hi.", {{"enable_thinking", true}})).text, off);

  settings.template_kwargs["enable_thinking"] = "true";
  EXPECT_EQ(must_render(*fresh_qwen(settings), ask("Hi.", {{"reasoning_effort", "none"}})).text, off);
}

TEST(RenderOptions, TemplateArgumentsOfTheRequestWin) {
  TemplateSettings settings;
  settings.template_kwargs = {{"mood", R"("calm")"}, {"size", "3"}};
  const auto templates = testing::templates_of("{{ mood }} {{ size }} {{ reasoning_effort }}", settings);
  const Json more = {{"chat_template_kwargs", {{"mood", "merry"}}}, {"reasoning_effort", "high"}};
  EXPECT_EQ(must_render(*templates, ask("Hi.", more)).text, "merry 3 high");
}

TEST(RenderOptions, ReasoningBudgetComesFromTheRequestOrTheServer) {
  TemplateSettings settings;
  settings.reasoning_budget_tokens = 70;
  settings.reasoning_budget_message = "Enough.";
  const auto templates = fresh_qwen(settings);
  EXPECT_EQ(must_render(*templates, ask("Hi.")).constraint.reasoning_budget_tokens, 70);
  const auto own = must_render(*templates, ask("Hi.", {{"reasoning_budget_tokens", 9}})).constraint;
  EXPECT_EQ(own.reasoning_budget_tokens, 9);
  EXPECT_EQ(own.reasoning_budget_message, "Enough.");
  EXPECT_EQ(must_render(*templates, ask("Hi.", {{"thinking_budget_tokens", 0}})).constraint.reasoning_budget_tokens, 0);
  EXPECT_EQ(must_render(*templates, ask("Hi.", {{"reasoning_budget_tokens", -1}})).constraint.reasoning_budget_tokens,
            70);
}

TEST(RenderOptions, ReasoningFormatNoneLeavesThoughtsInTheContent) {
  const auto templates = fresh_qwen();
  const std::string output = "<think>\nHm.\n</think>\n\nYes.";
  const Prompt split = must_render(*templates, ask("Hi."));
  EXPECT_EQ(describe(parse_whole(*templates, split, output)), "reasoning[Hm.\n] content[Yes.]");
  const Prompt none = must_render(*templates, ask("Hi.", {{"reasoning_format", "none"}}));
  EXPECT_EQ(describe(parse_whole(*templates, none, output)), "reasoning[] content[<think>\nHm.\n</think>\n\nYes.]");
}

TEST(RenderOptions, AnAnswerIsContinuedOrNot) {
  Json body = Json::parse(R"({"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":"A"}]})");
  const auto chatml = testing::templates_of("chatml");
  const std::string continued = "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA";
  EXPECT_EQ(must_render(*chatml, body).text, continued);
  body["continue_final_message"] = true;
  EXPECT_EQ(must_render(*chatml, body).text, continued);
  body["continue_final_message"] = false;
  TemplateSettings settings;
  settings.prefill_assistant = false;
  EXPECT_EQ(must_render(*testing::templates_of("chatml", settings), body).text,
            continued + "<|im_end|>\n<|im_start|>assistant\n");
  body["add_generation_prompt"] = false;
  EXPECT_EQ(must_render(*testing::templates_of("chatml", settings), body).text, continued + "<|im_end|>\n");
}

// A client replays an answer that was cut short inside a call. Refusing it would end the conversation for good.
TEST(RenderOptions, BrokenArgumentsInTheHistoryStillRender) {
  Json body = Json::parse(R"({"messages":[{"role":"user","content":"Q"},
      {"role":"assistant","tool_calls":[{"id":"a","function":{"name":"get_weather","arguments":"{\"city\": \"Os"}}]},
      {"role":"tool","tool_call_id":"a","content":"error"}]})");
  body["tools"] = weather_tools();
  for (const char* name : {"Qwen-Qwen3-0.6B", "Qwen3-Coder", "GLM-4.6", "MiniMax-M2"}) {
    const auto templates = testing::templates_of(testing::template_text(name));
    EXPECT_THAT(must_render(*templates, body).text, HasSubstr("Os")) << name;
  }
}

TEST(RenderOptions, ManyThreadsRenderAndParseAlike) {
  const auto templates = testing::templates_of(testing::template_text("Qwen-Qwen3-0.6B"), {});
  const Json body = ask("Hi.", {{"tools", weather_tools()}});
  const Prompt prompt = must_render(*templates, body);
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 10; ++round) {
          const auto again = templates->render(body);
          if (!again || again->text != prompt.text || again->constraint.grammar != prompt.constraint.grammar) ++wrong;
          const auto parser = templates->make_parser(prompt);
          parser->feed("<think>\nHm.\n</think>\n\nYes", false);
          parser->feed(".", true);
          if (parser->message().content != "Yes.") ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(RenderOptions, WithoutJinjaThereAreNoTools) {
  TemplateSettings settings;
  settings.use_jinja = false;
  const auto made = make_templates_from_source("chatml", "", "", settings);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(must_render(**made, ask("Hi.")).text, "<|im_start|>user\nHi.<|im_end|>\n<|im_start|>assistant\n");
  const auto refused = (*made)->render(ask("Hi.", {{"tools", weather_tools()}}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().param, "tools");
}

}  // namespace
}  // namespace coppice::chat
