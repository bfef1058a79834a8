// Every request that chat refuses, and the field that the error names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chat/chat_test_support.h"

namespace coppice::chat {
namespace {

using ::testing::HasSubstr;
using testing::qwen;

void expect_error(const Templates& templates, const Json& body, const std::string& param, const std::string& words) {
  const auto prompt = templates.render(body);
  ASSERT_FALSE(prompt.has_value()) << body.dump() << " was rendered";
  EXPECT_EQ(prompt.error().kind, ErrorKind::invalid_request) << body.dump();
  EXPECT_EQ(prompt.error().param, param) << body.dump() << ": " << prompt.error().message;
  EXPECT_THAT(prompt.error().message, HasSubstr(words));
}

struct ErrorCase {
  const char* body;
  const char* param;
  const char* words;
};

TEST(ChatErrors, NameTheMessageAtFault) {
  const ErrorCase cases[] = {
      {R"([])", "", "JSON object"},
      {R"({})", "messages", "required"},
      {R"({"messages":null})", "messages", "required"},
      {R"({"messages":"hi"})", "messages", "array"},
      {R"({"messages":[]})", "messages", "at least one"},
      {R"({"messages":["hi"]})", "messages[0]", "object"},
      {R"({"messages":[{"content":"x"}]})", "messages[0].role", "required"},
      {R"({"messages":[{"role":7,"content":"x"}]})", "messages[0].role", "string"},
      {R"({"messages":[{"role":"robot","content":"x"}]})", "messages[0].role", "robot"},
      {R"({"messages":[{"role":"user"}]})", "messages[0].content", "required"},
      {R"({"messages":[{"role":"assistant"},{"role":"user","content":"x"}]})", "messages[0].content", "tool_calls"},
      {R"({"messages":[{"role":"user","content":5}]})", "messages[0].content", "number"},
      {R"({"messages":[{"role":"user","content":{}}]})", "messages[0].content", "object"},
      {R"({"messages":[{"role":"user","content":["x"]}]})", "messages[0].content[0]", "object"},
      {R"({"messages":[{"role":"user","content":[{"text":"x"}]}]})", "messages[0].content[0].type", "text"},
      {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages[0].content[0].text", "required"},
      {R"({"messages":[{"role":"user","content":[{"type":"text","text":1}]}]})", "messages[0].content[0].text",
       "string"},
      {R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{}}]}]})",
       "messages[0].content[1]", "text only"},
      {R"({"messages":[{"role":"assistant","content":"x","tool_calls":{}}]})", "messages[0].tool_calls", "array"},
      {R"({"messages":[{"role":"assistant","tool_calls":[1]}]})", "messages[0].tool_calls[0]", "object"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"type":"custom"}]}]})", "messages[0].tool_calls[0].type",
       "custom"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":7}]}]})", "messages[0].tool_calls[0].function",
       "object"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"{}"}}]}]})",
       "messages[0].tool_calls[0].function.name", "required"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":7}}]}]})",
       "messages[0].tool_calls[0].function.arguments", "JSON"},
      {R"({"messages":[{"role":"tool","content":"x","tool_call_id":7}]})", "messages[0].tool_call_id", "string"},
      {R"({"messages":[{"role":"assistant","content":"x","reasoning_content":{}}]})", "messages[0].reasoning_content",
       "string"},
  };
  for (const ErrorCase& c : cases) expect_error(qwen(), Json::parse(c.body), c.param, c.words);
}

TEST(ChatErrors, NameTheOptionAtFault) {
  const ErrorCase cases[] = {
      {R"({"tools":{}})", "tools", "array"},
      {R"({"tools":[1]})", "tools[0]", "object"},
      {R"({"tools":[{"type":"web_search"}]})", "tools[0].type", "web_search"},
      {R"({"tools":[{"type":"function"}]})", "tools[0].function", "object"},
      {R"({"tools":[{"type":"function","function":{}}]})", "tools[0].function.name", "required"},
      {R"({"tools":[{"type":"function","function":{"name":""}}]})", "tools[0].function.name", "required"},
      {R"({"tools":[{"function":{"name":"f","description":1}}]})", "tools[0].function.description", "string"},
      {R"({"tools":[{"function":{"name":"f","parameters":[1]}}]})", "tools[0].function.parameters", "object"},
      {R"({"tools":[{"function":{"name":"f"}},{"function":{"name":"g","parameters":{"type":"nope"}}}]})",
       "tools[1].function.parameters", "JSON schema"},
      {R"({"parallel_tool_calls":1})", "parallel_tool_calls", "true or false"},
      {R"({"tool_choice":"required"})", "tool_choice", "no 'tools'"},
      {R"({"tool_choice":"sometimes"})", "tool_choice", "'auto'"},
      {R"({"tool_choice":5})", "tool_choice", "'auto'"},
      {R"({"tool_choice":{"type":"function"}})", "tool_choice", "'auto'"},
      {R"({"tool_choice":{"type":"function","function":{"name":"f"}}})", "tool_choice", "not in 'tools'"},
      {R"({"response_format":"json"})", "response_format", "object"},
      {R"({"response_format":{"type":"yaml"}})", "response_format.type", "yaml"},
      {R"({"response_format":{"type":"json_schema"}})", "response_format.json_schema.schema", "required"},
      {R"({"response_format":{"type":"json_schema","json_schema":{"schema":7}}})", "response_format.json_schema.schema",
       "object"},
      {R"({"json_schema":true})", "json_schema", "object"},
      {R"({"json_schema":{"$ref":"#/nope"}})", "json_schema", "nope"},
      {R"({"json_schema":{"type":"object"},"grammar":"root ::= \"a\""})", "grammar", "not both"},
      {R"({"response_format":{"type":"json_object"},"grammar":"root ::= \"a\""})", "grammar", "not both"},
      {R"({"tools":[{"function":{"name":"f"}}],"grammar":"root ::= \"a\""})", "grammar", "tools"},
      {R"({"grammar":5})", "grammar", "string"},
      {R"({"reasoning_effort":5})", "reasoning_effort", "string"},
      {R"({"reasoning_format":"loud"})", "reasoning_format", "loud"},
      {R"({"reasoning_budget_tokens":"5"})", "reasoning_budget_tokens", "count"},
      {R"({"reasoning_budget_tokens":-2})", "reasoning_budget_tokens", "count"},
      {R"({"thinking_budget_tokens":99999999999})", "thinking_budget_tokens", "count"},
      {R"({"enable_thinking":"yes"})", "enable_thinking", "true or false"},
      {R"({"chat_template_kwargs":[]})", "chat_template_kwargs", "object"},
      {R"({"chat_template_kwargs":{"enable_thinking":"yes"}})", "chat_template_kwargs.enable_thinking",
       "true or false"},
      {R"({"add_generation_prompt":"no"})", "add_generation_prompt", "true or false"},
      {R"({"continue_final_message":5})", "continue_final_message", "true"},
      {R"({"continue_final_message":true})", "continue_final_message", "assistant"},
  };
  for (const ErrorCase& c : cases) expect_error(qwen(), testing::ask("Hi.", Json::parse(c.body)), c.param, c.words);
}

TEST(ChatErrors, RefuseNestingThatWouldOverflowAStack) {
  Json deep = Json::object();
  for (int i = 0; i < 5000; ++i) {
    Json outer = Json::object();
    outer["a"] = std::move(deep);
    deep = std::move(outer);
  }
  expect_error(qwen(), testing::ask("Hi.", {{"json_schema", deep}}), "json_schema", "deeper");
  expect_error(qwen(), testing::ask("Hi.", {{"chat_template_kwargs", deep}}), "chat_template_kwargs", "deeper");
  Json tools = testing::weather_tools();
  tools[1]["function"]["parameters"] = deep;
  expect_error(qwen(), testing::ask("Hi.", {{"tools", tools}}), "tools[1].function.parameters", "deeper");

  Json body = Json::parse(R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}]})");
  Json& arguments = body["messages"][0]["tool_calls"][0]["function"]["arguments"];
  const std::string param = "messages[0].tool_calls[0].function.arguments";
  arguments = deep;
  expect_error(qwen(), body, param, "deeper");
  arguments = std::string(5000, '[') + std::string(5000, ']');
  expect_error(qwen(), body, param, "deeper");
}

TEST(ChatErrors, RefuseSchemasThatNeverEnd) {
  const Json schema = Json::parse(R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},
                                     "allOf":[{"$ref":"#/$defs/a"}]})");
  expect_error(qwen(), testing::ask("Hi.", {{"json_schema", schema}}), "json_schema", "circular");
}

TEST(ChatErrors, RefuseSchemasThatTakeSecondsToCompile) {
  Json properties = Json::object();
  for (int i = 0; i < 250; ++i) properties["p" + std::to_string(i)] = Json{{"type", "string"}};
  const Json schema = {{"type", "object"}, {"properties", properties}};
  EXPECT_TRUE(qwen().render(testing::ask("Hi.", {{"json_schema", schema}})).has_value());
  const Json tool = {{"type", "function"}, {"function", {{"name", "f"}, {"parameters", schema}}}};
  const Json tools = {{"tools", Json::array({tool, tool, tool, tool, tool, tool, tool})}};
  expect_error(qwen(), testing::ask("Hi.", tools), "tools[6].function.parameters", "too large");
}

TEST(ChatErrors, SayWhatTheTemplateRaised) {
  const auto strict = testing::templates_of(
      "{% for m in messages %}{% if m.content == 'bad' %}"
      "{{ raise_exception('No bad words, please') }}{% endif %}{{ m.content }}{% endfor %}");
  expect_error(*strict, testing::ask("bad"), "messages", "No bad words, please");
  EXPECT_TRUE(strict->render(testing::ask("good")).has_value());
}

TEST(ChatErrors, RefuseToRequireToolsFromATemplateWithout) {
  const auto chatml = testing::templates_of("chatml");
  const Json body = testing::ask("Hi.", {{"tools", testing::weather_tools()}, {"tool_choice", "required"}});
  expect_error(*chatml, body, "tool_choice", "no tool calls");
}

TEST(ChatErrors, TheEndOfTheConversationMustBeContinuable) {
  const Json two = Json::parse(R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"a"},
                                  {"role":"assistant","content":"b"}]})");
  expect_error(qwen(), two, "messages[2]", "Two messages");
  const Json calls = Json::parse(R"({"messages":[{"role":"user","content":"x"},
      {"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]})");
  expect_error(qwen(), calls, "messages[1]", "tool calls");
  Json both = Json::parse(R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"a"}],
                             "continue_final_message":true,"add_generation_prompt":true})");
  expect_error(qwen(), both, "continue_final_message", "both");
}

TEST(ChatErrors, BytesThatAreNotUtf8AreNoReasonToFail) {
  const std::string bad = "a\xff\xc3";
  Json body = testing::ask(bad, {{"tools", testing::weather_tools()}, {"reasoning_effort", bad}});
  body["tools"][0]["function"]["description"] = bad;
  body["tools"][0]["function"]["parameters"]["properties"]["city"]["description"] = bad;
  body["chat_template_kwargs"] = Json{{"note", bad}};
  const auto prompt = qwen().render(body);  // rendered or refused, but it comes back
  EXPECT_TRUE(prompt.has_value() || prompt.error().kind == ErrorKind::invalid_request);
}

TEST(ChatErrors, ATemplateThatDoesNotParseSaysWhy) {
  const auto made = make_templates_from_source("{% for m in messages %}{{ m.content }", "", "", {});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::invalid_request);
  EXPECT_THAT(made.error().message, HasSubstr("cannot be used"));
  EXPECT_THAT(made.error().message, ::testing::Not(HasSubstr("std::exception")));
}

}  // namespace
}  // namespace coppice::chat
