// What real models' templates make of an answer, however it is cut into pieces: each table row holds an output as the
// model writes it and the message that it means.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "chat/chat_test_support.h"

namespace coppice::chat {
namespace {

using testing::describe;
using testing::must_render;
using testing::parse_pieces;
using testing::parse_whole;
using testing::pieces_of;

struct OutputCase {
  const char* label;
  const char* tmpl;
  std::string output;
  std::string message;  // as describe() writes it
};

void PrintTo(const OutputCase& c, std::ostream* out) { *out << c.label; }

std::vector<OutputCase> output_cases() {
  return {
      {"qwen3_two_calls", "Qwen-Qwen3-0.6B",
       "<think>\nÅbo first.\n</think>\n\nI will look it up.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
       "{\"city\": \"Åbo [\\\"]\", \"days\": 3}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_time\", \"arguments\": "
       "{\"zone\": \"UTC\"}}\n</tool_call>",
       "reasoning[Åbo first.\n] content[I will look it up.\n] call_0:get_weather({\"city\": \"Åbo [\\\"]\", \"days\": "
       "3}) "
       "call_1:get_time({\"zone\": \"UTC\"})"},
      {"qwen3_answer", "Qwen-Qwen3-0.6B", "<think>\nEasy.\n</think>\n\nIt is <b>warm</b>: 20 °C.\n",
       "reasoning[Easy.\n] content[It is <b>warm</b>: 20 °C.\n]"},
      {"qwen3_coder", "Qwen3-Coder",
       "Looking.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nSão "
       "\"Paulo\"\n</parameter>\n<parameter=days>\n2\n"
       "</parameter>\n</function>\n</tool_call>",
       "reasoning[] content[Looking.\n] call_0:get_weather({\"city\":\"São \\\"Paulo\\\"\",\"days\":2})"},
      {"gpt_oss", "openai-gpt-oss-120b",
       "<|channel|>analysis<|message|>Need weather.<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.get_weather <|constrain|>json<|message|>{\"city\":\"Oslo\"}",
       "reasoning[Need weather.] content[] call_0:get_weather({\"city\":\"Oslo\"})"},
      {"gpt_oss_answer", "openai-gpt-oss-120b",
       "<|channel|>analysis<|message|>Simple.<|end|><|start|>assistant<|channel|>final<|message|>It rains, a < b.",
       "reasoning[Simple.] content[It rains, a < b.]"},
      {"deepseek_v32", "deepseek-ai-DeepSeek-V3.2",
       "Which city?</think>One moment.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke "
       "name=\"get_weather\">\n<｜DSML｜parameter "
       "name=\"city\" string=\"true\">Zürich</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
       "string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
       "reasoning[Which city?] content[One moment.] call_0:get_weather({\"city\":\"Zürich\",\"days\":2})"},
      {"llama31", "meta-llama-Llama-3.1-8B-Instruct",
       "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Oslo\"}}",
       "reasoning[] content[] call_0:get_weather({\"city\": \"Oslo\"})"},
      {"llama31_answer", "meta-llama-Llama-3.1-8B-Instruct", "The weather is fine, {really}.",
       "reasoning[] content[The weather is fine, {really}.]"},
      {"mistral_small", "Mistral-Small-3.2-24B-Instruct-2506",
       "[TOOL_CALLS]get_weather[CALL_ID]abc123def[ARGS]{\"city\": \"Oslo\"}",
       "reasoning[] content[] abc123def:get_weather({\"city\": \"Oslo\"})"},
      {"mistral_nemo", "mistralai-Mistral-Nemo-Instruct-2407",
       "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}, \"id\": \"123456789\"}]",
       "reasoning[] content[] 123456789:get_weather({\"city\": \"Oslo\"})"},
      {"glm", "GLM-4.6",
       "\n<think>Where?</think>\nLooking.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</"
       "arg_value>\n"
       "</tool_call>",
       "reasoning[Where?] content[Looking.\n] call_0:get_weather({\"city\":\"Oslo\"})"},
      {"kimi", "moonshotai-Kimi-K2",
       "Sure.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"
       "\"city\": "
       "\"Oslo\"}<|tool_call_end|><|tool_calls_section_end|>",
       "reasoning[] content[Sure.] functions.get_weather:0:get_weather({\"city\": \"Oslo\"})"},
      {"minimax", "MiniMax-M2",
       "Hm.\n</think>\n\nLooking.\n<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter "
       "name=\"city\">Oslo</parameter>\n</invoke>\n</minimax:tool_call>",
       "reasoning[Hm.\n] content[Looking.\n] call_0:get_weather({\"city\":\"Oslo\"})"},
      {"ministral", "mistralai-Ministral-3-14B-Reasoning-2512",
       "[THINK]Hm.[/THINK]Looking.[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Oslo\"}",
       "reasoning[Hm.] content[Looking.] call_0:get_weather({\"city\": \"Oslo\"})"},
  };
}

class Outputs : public ::testing::TestWithParam<OutputCase> {
 protected:
  void SetUp() override {
    TemplateSettings settings;
    settings.make_call_id = [this] { return std::string("call_").append(std::to_string(ids_++)); };
    templates_ = testing::templates_of(testing::template_text(GetParam().tmpl), settings);
    prompt_ = must_render(*templates_, testing::ask("?", {{"tools", testing::weather_tools()}}));
  }

  std::string parse(const std::vector<std::string>& pieces) {
    ids_ = 0;
    return describe(parse_pieces(*templates_, prompt_, pieces), /*with_ids=*/true);
  }

  int ids_ = 0;
  std::unique_ptr<Templates> templates_;
  Prompt prompt_;
};

TEST_P(Outputs, MeansTheSameWholeAndInPieces) {
  const OutputCase& c = GetParam();
  EXPECT_EQ(parse({c.output}), c.message);
  for (const std::size_t bytes : {1, 2, 3, 7}) EXPECT_EQ(parse(pieces_of(c.output, bytes)), c.message) << bytes;
}

TEST_P(Outputs, MeansTheSameCutAnywhere) {
  const OutputCase& c = GetParam();
  for (std::size_t cut = 1; cut < c.output.size(); ++cut) {
    ASSERT_EQ(parse({c.output.substr(0, cut), c.output.substr(cut)}), c.message) << "cut at " << cut;
  }
}

TEST_P(Outputs, MeansTheSameInRandomPieces) {
  const OutputCase& c = GetParam();
  const bool ok = rc::check(c.label, [&] {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < c.output.size();) {
      const auto bytes = *rc::gen::inRange<std::size_t>(1, 24);
      pieces.push_back(c.output.substr(at, bytes));
      at += bytes;
    }
    RC_ASSERT(parse(pieces) == c.message);
  });
  EXPECT_TRUE(ok);
}

// An answer may end anywhere (max_tokens). What was streamed stays true (parse_pieces checks it), and reasoning is not
// lost.
TEST_P(Outputs, MayEndAnywhere) {
  const OutputCase& c = GetParam();
  for (std::size_t end = 0; end <= c.output.size(); ++end) {
    const std::string cut = c.output.substr(0, end);
    const std::string whole = parse({cut});
    EXPECT_EQ(parse(pieces_of(cut, 1)).empty(), whole.empty()) << "end at " << end;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Outputs, ::testing::ValuesIn(output_cases()),
                         [](const auto& param) { return std::string(param.param.label); });

}  // namespace
}  // namespace coppice::chat
