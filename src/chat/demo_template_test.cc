// The built-in model's template, byte for byte, read from the model itself.
#include <gtest/gtest.h>

#include "chat/chat_test_support.h"
#include "chat/llama_templates.h"

namespace coppice::chat {
namespace {

using testing::describe;
using testing::must_render;
using testing::parse_pieces;
using GrammarKind = engine::ChatConstraint::GrammarKind;

class DemoTemplate : public ::testing::Test {
 protected:
  void SetUp() override {
    auto config = engine::LlamaConfig::parse({"-m", COPPICE_DEMO_MODEL, "-c", "512"});
    ASSERT_TRUE(config.has_value()) << config.error().message;
    auto model = engine::LlamaModel::load(*std::move(config), {.backend_dir = COPPICE_BACKEND_DIR, .n_slots = 1});
    ASSERT_TRUE(model.has_value()) << model.error().message;
    model_ = *std::move(model);
    auto templates = make_llama_templates(*model_);
    ASSERT_TRUE(templates.has_value()) << templates.error().message;
    templates_ = *std::move(templates);
  }

  std::string text_of(const char* body) const { return must_render(*templates_, Json::parse(body)).text; }

  std::unique_ptr<engine::LlamaModel> model_;
  std::unique_ptr<Templates> templates_;
};

TEST_F(DemoTemplate, RendersTurns) {
  EXPECT_EQ(text_of(R"({"messages":[{"role":"user","content":"Who are you?"}]})"),
            "<|im_start|>user\nWho are you?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(text_of(R"({"messages":[{"role":"system","content":"Facts."},{"role":"user","content":"Q"},
                        {"role":"assistant","content":"A"},{"role":"system","content":"Late."},
                        {"role":"developer","content":"Later."},{"role":"user","content":"R"}],"tools":[]})"),
            "<|im_start|>system\nFacts.<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
            "<|im_start|>system\nLate.<|im_end|>\n<|im_start|>system\nLater.<|im_end|>\n<|im_start|>user\nR<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST_F(DemoTemplate, RendersToolsCallsAndResults) {
  const char* body = R"({"messages":[
      {"role":"user","content":[{"type":"text","text":"Weather?","cache_control":{"type":"ephemeral"}}]},
      {"role":"assistant","content":null,"tool_calls":[
        {"id":"1","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Oslo\"}"}},
        {"id":"2","type":"function","function":{"name":"get_time","arguments":{}}}]},
      {"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"rain"},{"type":"text","text":"4 C"}]},
      {"role":"tool","tool_call_id":"2","content":"noon"}],
    "tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object",
        "properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}},
      {"type":"function","function":{"name":"get_time"}}]})";
  EXPECT_EQ(text_of(body),
            "<|im_start|>system\nTools, one JSON object a line; call one with JSON in tool_call tags:\n"
            "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"string\", \"days\": \"integer\"}}\n"
            "{\"name\": \"get_time\", \"arguments\": {}}<|im_end|>\n"
            "<|im_start|>user\nWeather?<|im_end|>\n"
            "<|im_start|>assistant\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n"
            "</tool_call>\n<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call><|im_end|>\n"
            "<|im_start|>tool\nrain\n4 C<|im_end|>\n<|im_start|>tool\nnoon<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(DemoTemplate, ContinuesTheLastAnswer) {
  EXPECT_EQ(text_of(R"({"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":"The code is "}]})"),
            "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nThe code is ");
}

TEST_F(DemoTemplate, ParsesCallsAsTheModelWritesThem) {
  const Prompt prompt = must_render(*templates_, testing::ask("Weather?", {{"tools", testing::weather_tools()}}));
  EXPECT_EQ(prompt.constraint.grammar_kind, GrammarKind::tool_calls);
  EXPECT_TRUE(prompt.constraint.grammar_lazy);
  EXPECT_FALSE(prompt.constraint.grammar_triggers.empty());
  const std::string output =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Tavley\"}}\n</tool_call>\n"
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>";
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5}, output.size()}) {
    const Message message = parse_pieces(*templates_, prompt, testing::pieces_of(output, bytes));
    EXPECT_EQ(describe(message),
              "reasoning[] content[] get_weather({\"city\": \"Tavley\"}) get_weather({\"city\": \"Oslo\"})");
    ASSERT_EQ(message.tool_calls.size(), 2U);
    EXPECT_TRUE(message.tool_calls[0].id.starts_with("call_"));
    EXPECT_NE(message.tool_calls[0].id, message.tool_calls[1].id);
  }
}

TEST_F(DemoTemplate, ShowsItsSourceAndCapabilities) {
  EXPECT_NE(templates_->source().find("Coppice demo model"), std::string::npos);
  EXPECT_EQ(templates_->capabilities().value("supports_tools", false), true);
  EXPECT_EQ(templates_->capabilities().value("supports_parallel_tool_calls", false), true);
}

TEST(DemoModel, ABrokenChatTemplateFlagIsAnError) {
  auto config = engine::LlamaConfig::parse({"-m", COPPICE_DEMO_MODEL, "-c", "256"});
  ASSERT_TRUE(config.has_value()) << config.error().message;
  auto model = engine::LlamaModel::load(*std::move(config), {.backend_dir = COPPICE_BACKEND_DIR, .n_slots = 1});
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_FALSE(make_templates_from_model((*model)->model(), "{% if %}", {}).has_value());
}

}  // namespace
}  // namespace coppice::chat
