#include "chat/output_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <set>

#include "chat/chat_test_support.h"

namespace coppice::chat {
namespace {

using testing::ask;
using testing::describe;
using ::testing::HasSubstr;
using testing::must_render;
using testing::parse_pieces;
using testing::parse_whole;
using testing::pieces_of;
using testing::qwen;

Prompt qwen_prompt() { return must_render(qwen(), ask("?", {{"tools", testing::weather_tools()}})); }

TEST(OutputParser, StreamsAsTheTextArrives) {
  const auto parser = qwen().make_parser(qwen_prompt());
  parser->feed("<think>\n", false);
  ASSERT_EQ(parser->feed("Let me", false).size(), 1U);
  EXPECT_EQ(parser->message().reasoning, "Let me");
  parser->feed(" see\n</think>\n\nIt", false);
  EXPECT_EQ(parser->message().content, "It");
  parser->feed(" is\n<tool_ca", false);
  EXPECT_EQ(parser->message().content, "It is") << "what may begin a marker is held back";
  const auto call = parser->feed("ll>\n{\"name\": \"get_weather\", \"arguments\": {\"ci", false);
  ASSERT_EQ(call.size(), 2U);
  EXPECT_EQ(call.front().content, "\n") << "held back until it was clear that it is not the call's";
  EXPECT_EQ(call.back().tool_index, 0U);
  EXPECT_EQ(call.back().tool_name, "get_weather");
  EXPECT_EQ(parser->message().tool_calls.at(0).arguments, "{\"ci");
  const auto more = parser->feed("ty\": 1}}\n</tool_call>", true);
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(more.back().tool_name, "");
  EXPECT_EQ(more.back().tool_arguments, "ty\": 1}");
}

// llama-common's grammar lets the model call again however parallel_tool_calls is set.
TEST(OutputParser, OneCallIsAllThatComesOutWhereOneWasAskedFor) {
  const Json fields = {{"tools", testing::weather_tools()}, {"parallel_tool_calls", false}};
  const Prompt one = must_render(qwen(), ask("?", fields));
  ASSERT_TRUE(one.one_call);
  const std::string call =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>";
  const std::string expected = "reasoning[] content[] get_weather({\"city\": \"Oslo\"})";
  // The second one whole, and cut off at each of its bytes.
  const std::string output = call + "\n" + call;
  for (std::size_t end = call.size(); end <= output.size(); ++end) {
    for (const std::size_t bytes : {std::size_t{5}, output.size()}) {
      const Message message = parse_pieces(qwen(), one, pieces_of(output.substr(0, end), bytes));
      EXPECT_EQ(describe(message), expected) << "of " << end << " bytes in pieces of " << bytes;
    }
  }
  const auto parser = qwen().make_parser(one);
  parser->feed(call, false);
  EXPECT_FALSE(parser->has_enough()) << "the model may end its answer by itself";
  parser->feed("\n" + call, false);
  EXPECT_TRUE(parser->has_enough());
  EXPECT_TRUE(parser->feed("more", true).empty());

  const Prompt any = qwen_prompt();
  EXPECT_FALSE(any.one_call);
  EXPECT_EQ(parse_pieces(qwen(), any, pieces_of(output, 5)).tool_calls.size(), 2U);
}

TEST(OutputParser, CharactersAreNeverCutInTwo) {
  const auto chatml = testing::templates_of("chatml");
  const auto parser = chatml->make_parser(must_render(*chatml, ask("?")));
  const std::string text = "a€𝄞";
  EXPECT_EQ(parser->feed(text.substr(0, 2), false).size(), 1U);
  EXPECT_EQ(parser->message().content, "a");
  parser->feed(text.substr(2, 3), false);
  EXPECT_EQ(parser->message().content, "a€");
  parser->feed(text.substr(5), true);
  EXPECT_EQ(parser->message().content, text);
}

// With tools that are prefixes of each other a name is known only when it has ended.
TEST(OutputParser, AToolNameIsGivenOutWhole) {
  const Json tools = Json::parse(R"([{"type":"function","function":{"name":"read"}},
                                     {"type":"function","function":{"name":"read_file"}}])");
  const Prompt prompt = must_render(qwen(), ask("?", {{"tools", tools}}));
  const std::string output = "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {}}\n</tool_call>";
  EXPECT_EQ(describe(parse_pieces(qwen(), prompt, pieces_of(output, 1))), "reasoning[] content[] read_file({})");
}

TEST(OutputParser, WhatDoesNotParseIsContent) {
  const Prompt prompt = qwen_prompt();
  for (const std::string& broken :
       {std::string("<tool_call>\n{\"name\": \"no_such_tool\", \"arguments\": {}}\n</tool_call>"),
        std::string("<tool_call>\nthis is no JSON\n</tool_call>")}) {
    const std::string output = "Well.\n" + broken;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{3}, output.size()}) {
      const Message message = parse_pieces(qwen(), prompt, pieces_of(output, bytes));
      EXPECT_EQ(message.content, output) << "in pieces of " << bytes;
      EXPECT_TRUE(message.tool_calls.empty());
    }
    const Message thought = parse_pieces(qwen(), prompt, pieces_of("<think>\nHm.\n</think>\n\n" + output, 2));
    EXPECT_THAT(thought.reasoning, HasSubstr("Hm."));
    EXPECT_THAT(thought.content, HasSubstr("Well.\n"));
    EXPECT_THAT(thought.content, HasSubstr(broken));
  }
}

// The parser underneath recurses once per bracket.
TEST(OutputParser, EndlessBracketsDoNotOverflowTheStack) {
  const Json tools = Json::parse(R"([{"type":"function","function":{"name":"f","parameters":
      {"type":"object","properties":{"x":{}}}}}])");
  const Prompt prompt = must_render(qwen(), ask("?", {{"tools", tools}}));
  std::string output = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": ";
  output.append(100'000, '[');
  const Message message = parse_pieces(qwen(), prompt, pieces_of(output, 4096));
  EXPECT_GE(message.content.size(), 90'000U) << "it is still given out";
}

TEST(OutputParser, AContinuedAnswerGivesOnlyWhatIsNew) {
  const Json body = Json::parse(R"({"messages":[{"role":"user","content":"Q"},
                                    {"role":"assistant","content":"The code is "}]})");
  const auto chatml = testing::templates_of("chatml");
  const Prompt prompt = must_render(*chatml, body);
  EXPECT_EQ(parse_pieces(*chatml, prompt, pieces_of("4821. Yes.", 1)).content, "4821. Yes.");
  const Prompt thinking = must_render(qwen(), body);
  EXPECT_EQ(describe(parse_pieces(qwen(), thinking, pieces_of("4821. Yes.", 1))), "reasoning[] content[4821. Yes.]");
}

TEST(OutputParser, AnEmptyAnswerIsEmpty) {
  const auto parser = qwen().make_parser(qwen_prompt());
  EXPECT_TRUE(parser->feed("", false).empty());
  EXPECT_TRUE(parser->feed("", true).empty());
  EXPECT_EQ(describe(parser->message()), "reasoning[] content[]");
}

TEST(OutputParser, SkippingTheParserGivesEverythingAsContent) {
  TemplateSettings settings;
  settings.parse_output = false;
  const auto raw = testing::templates_of(testing::template_text("Qwen-Qwen3-0.6B"), settings);
  const std::string output = "<think>\nHm.\n</think>\n\n<tool_call>\n{}\n</tool_call>";
  const Prompt prompt = must_render(*raw, ask("?", {{"tools", testing::weather_tools()}}));
  EXPECT_EQ(describe(parse_pieces(*raw, prompt, pieces_of(output, 3))), "reasoning[] content[" + output + "]");
}

TEST(OutputParser, CallIdsAreUniqueAndMistralsAreShort) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(random_id(24));
  EXPECT_EQ(ids.size(), 1000U);
  const auto mistral = testing::templates_of(testing::template_text("Mistral-Small-3.2-24B-Instruct-2506"), {});
  const Prompt prompt = must_render(*mistral, ask("?", {{"tools", testing::weather_tools()}}));
  const Message message = parse_whole(*mistral, prompt, "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Oslo\"}");
  ASSERT_EQ(message.tool_calls.size(), 1U) << describe(message);
  EXPECT_EQ(message.tool_calls[0].id.size(), 9U);
}

// Printed, not asserted: a long answer must not cost the square of its length.
TEST(OutputParser, CostOfALongAnswer) {
  std::string prose;
  while (prose.size() < 20'000)
    prose += "The quick brown fox, it is said, jumps over 13 lazy dogs; `x[3]` <b>bold</b>\n";
  for (const char* name : {"Qwen-Qwen3-0.6B", "meta-llama-Llama-3.1-8B-Instruct"}) {
    const auto templates = testing::templates_of(testing::template_text(name));
    const Prompt prompt = must_render(*templates, ask("?", {{"tools", testing::weather_tools()}}));
    const auto parser = templates->make_parser(prompt);
    std::size_t deltas = 0;
    const std::clock_t begin = std::clock();
    for (const std::string& piece : pieces_of(prose, 4)) deltas += parser->feed(piece, false).size();
    parser->feed("", true);
    const double spent_ms = 1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::cout << name << ": " << prose.size() << " bytes in pieces of 4: " << spent_ms << " ms of CPU, " << deltas
              << " deltas\n";
    EXPECT_EQ(parser->message().content, prose);
    EXPECT_GT(deltas, prose.size() / 16) << "streaming must stay smooth";
  }
}

}  // namespace
}  // namespace coppice::chat
