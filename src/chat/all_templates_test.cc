// The chat templates of real models, as llama.cpp's release collects them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>

#include "chat/chat_test_support.h"

namespace coppice::chat {
namespace {

using testing::must_render;

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(COPPICE_TEMPLATE_DIR)) {
    if (entry.path().extension() == ".jinja") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

Json two_step_conversation() {
  Json body = Json::parse(R"({"messages":[
    {"role":"system","content":"You know the weather."},
    {"role":"user","content":"Is it warmer in Oslo or in Turku?"},
    {"role":"assistant","content":null,"reasoning_content":"First Oslo.","tool_calls":[
      {"id":"abcdefgh1","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Oslo\"}"}}]},
    {"role":"tool","tool_call_id":"abcdefgh1","name":"get_weather","content":"OSLO-RESULT"},
    {"role":"assistant","reasoning_content":"Then Turku.","tool_calls":[
      {"id":"abcdefgh2","type":"function","function":{"name":"get_weather","arguments":{"city":"Turku"}}}]},
    {"role":"tool","tool_call_id":"abcdefgh2","name":"get_weather","content":"TURKU-RESULT"}
  ]})");
  body["tools"] = testing::weather_tools();
  return body;
}

// Why a template does not render the conversation with tools; the others must.
const std::map<std::string, std::string> no_tool_loop = {
    {"google-gemma-2-2b-it", "knows no tools and insists on user and assistant in turn"},
    {"llama-cpp-rwkv-world", "drops messages of tools"},
    {"microsoft-Phi-3.5-mini-instruct", "drops messages of tools"},
};

Json conversation_for(const std::string& name) {
  if (!no_tool_loop.contains(name)) return two_step_conversation();
  return Json::parse(R"({"messages":[{"role":"system","content":"Rules."},{"role":"user","content":"Hello."}]})");
}

void use_parts(Json& body) {
  for (Json& message : body["messages"]) {
    if (!message.contains("content") || !message["content"].is_string()) continue;
    Json part = {{"type", "text"}, {"text", message["content"]}, {"cache_control", {{"type", "ephemeral"}}}};
    message["content"] = Json::array({part});
  }
}

void expect_tool_loop(const Templates& templates) {
  const std::string text = must_render(templates, two_step_conversation()).text;
  const auto oslo = text.find("OSLO-RESULT"), turku = text.find("TURKU-RESULT");
  EXPECT_NE(turku, std::string::npos);
  EXPECT_LT(oslo, turku);
}

void expect_text_and_parts_alike(const Templates& templates, Json body) {
  const std::string text = must_render(templates, body).text;
  EXPECT_EQ(must_render(templates, body).text, text) << "the same body gave two prompts";
  use_parts(body);
  EXPECT_EQ(must_render(templates, body).text, text);
}

// Guesses are made of it: api/chat_guess.h.
void expect_text_alone_alike(const Templates& templates, Json body) {
  for (int n = 0; n < 2; ++n) {
    const auto text = templates.render_text(body);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text, must_render(templates, body).text);
    body.erase("tools");
  }
}

void expect_late_system_in_place(const Templates& templates, const std::string& role) {
  Json body = Json::parse(R"({"messages":[
    {"role":"system","content":"FIRST-RULE"},{"role":"user","content":"QUESTION"},
    {"role":"assistant","content":"ANSWER"},
    {"role":"system","content":"LATE-RULE"},{"role":"user","content":"MORE"}]})");
  body["messages"][3]["role"] = role;
  const std::string text = must_render(templates, body).text;
  const auto answer = text.find("ANSWER"), late = text.find("LATE-RULE"), more = text.find("MORE");
  EXPECT_TRUE(answer < late && late < more && more != std::string::npos) << text;
  EXPECT_NE(text.find("FIRST-RULE"), std::string::npos);
}

void expect_json_constrained(const Templates& templates) {
  const Prompt prompt = must_render(templates, testing::ask("?", {{"response_format", {{"type", "json_object"}}}}));
  EXPECT_FALSE(prompt.constraint.grammar.empty());
  EXPECT_FALSE(prompt.constraint.grammar_lazy);
}

class EveryTemplate : public ::testing::TestWithParam<std::string> {};

// One test for all that must hold of each, as reading a template takes up to 0.2 s.
TEST_P(EveryTemplate, RendersWhatAgentsSend) {
  const auto templates = testing::templates_of(testing::template_text(GetParam()));
  ASSERT_NE(templates, nullptr);
  expect_text_and_parts_alike(*templates, conversation_for(GetParam()));
  expect_text_alone_alike(*templates, conversation_for(GetParam()));
  expect_late_system_in_place(*templates, "system");
  expect_late_system_in_place(*templates, "developer");
  expect_json_constrained(*templates);
  if (const auto it = no_tool_loop.find(GetParam()); it != no_tool_loop.end()) {
    std::cout << GetParam() << ": no tool loop, as it " << it->second << '\n';
  } else {
    expect_tool_loop(*templates);
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Release, EveryTemplate, ::testing::ValuesIn(template_names()), test_name);

}  // namespace
}  // namespace coppice::chat
