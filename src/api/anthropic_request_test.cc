// The table of what an Anthropic request means as a chat.
#include "api/anthropic_request.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "api/normalise.h"
#include "base/json.h"

namespace coppice::api {
namespace {

// The translated and normalised body; an error as {"error": message, "param": param}.
Json chat_of(const Json& body, AnthropicCall call = AnthropicCall::count) {
  auto chat = anthropic_to_chat(body, call);
  if (!chat) return {{"error", chat.error().message}, {"param", chat.error().param}};
  normalise_chat(*chat);
  return *chat;
}

Json with_messages(const std::string& messages) { return Json::parse(R"({"messages":[)" + messages + "]}"); }
Json with_field(const std::string& field) {
  return Json::parse(R"({"messages":[{"role":"user","content":"hi"}],)" + field + "}");
}

TEST(AnthropicRequest, Messages) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"role":"user","content":"hi"})", R"([{"role":"user","content":"hi"}])"},
      {R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})",
       R"([{"role":"user","content":"a\nb"}])"},
      {R"({"role":"user","content":[]})", R"([{"role":"user","content":""}])"},
      // A system message stays where it is.
      {R"({"role":"user","content":"a"},{"role":"system","content":"late"},{"role":"user","content":"b"})",
       R"([{"role":"user","content":"a"},{"role":"system","content":"late"},{"role":"user","content":"b"}])"},
      {R"({"role":"assistant","content":"sure"})", R"([{"role":"assistant","content":"sure"}])"},
      {R"({"role":"assistant","content":[]})", R"([{"role":"assistant","content":""}])"},
      // Thinking, text and calls of one turn.
      {R"({"role":"assistant","content":[{"type":"thinking","thinking":"hm ","signature":"msg_1"},
          {"type":"thinking","thinking":"so","signature":"msg_1"},{"type":"redacted_thinking","data":"xyz"},
          {"type":"text","text":"ok"},{"type":"tool_use","id":"t1","name":"ls","input":{"b":1,"a":[2]}},
          {"type":"tool_use","id":"t2","name":"pwd"}]})",
       R"([{"role":"assistant","content":"ok","reasoning_content":"hm so","reasoning_signature":"msg_1","tool_calls":[)"
       R"({"id":"t1","type":"function","function":{"name":"ls","arguments":"{\"b\":1,\"a\":[2]}"}},)"
       R"({"id":"t2","type":"function","function":{"name":"pwd","arguments":"{}"}}]}])"},
      {R"({"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":{}}]})",
       R"([{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"ls","arguments":"{}"}}]}])"},
      // Results of tools, and what the user says beside them, in order.
      {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"},
          {"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"y"},{"type":"text","text":"z"}]},
          {"type":"tool_result","tool_use_id":"t3"},{"type":"text","text":"go on"},{"type":"text","text":"please"}]})",
       R"([{"role":"tool","tool_call_id":"t1","content":"x"},{"role":"tool","tool_call_id":"t2","content":"y\nz"},)"
       R"({"role":"tool","tool_call_id":"t3","content":""},{"role":"user","content":"go on\nplease"}])"},
      {R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"t","content":"x"},
          {"type":"text","text":"b"}]})",
       R"([{"role":"user","content":"a"},{"role":"tool","tool_call_id":"t","content":"x"},{"role":"user","content":"b"}])"},
  };
  for (const auto& [messages, chat] : cases) {
    EXPECT_EQ(chat_of(with_messages(messages))["messages"].dump(), chat) << messages;
  }
}

TEST(AnthropicRequest, ErrorsOfToolsReadLikeErrors) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("no such file")", "Error: no such file"},
      {R"([{"type":"text","text":"no such file"}])", "Error: no such file"},
      {R"("Error: no such file")", "Error: no such file"},
      {R"("<tool_use_error>no</tool_use_error>")", "<tool_use_error>no</tool_use_error>"},
      {R"("IOERROR")", "IOERROR"},
      {R"("")", "Error"},
      {"null", "Error"},
  };
  for (const auto& [content, text] : cases) {
    const std::string result = R"({"type":"tool_result","tool_use_id":"t","is_error":true,"content":)";
    const Json chat = chat_of(with_messages(R"({"role":"user","content":[)" + result + content + "}]}"));
    EXPECT_EQ(chat["messages"][0]["content"], text) << content;
  }
}

TEST(AnthropicRequest, System) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("system":"Be brief.")", "Be brief."},
      {R"("system":[{"type":"text","text":"One","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Two"}])",
       "One\nTwo"},
      {R"("system":[{"type":"text","text":"x-anthropic-billing-header: v=1; e=cli;"},{"type":"text","text":"One"}])",
       "One"},
      {R"("system":"x-anthropic-billing-header: v=1\nOne")", "One"},
  };
  for (const auto& [field, text] : cases) {
    const Json messages = chat_of(with_field(field))["messages"];
    ASSERT_EQ(messages.size(), 2U) << field;
    EXPECT_EQ(messages[0], (Json{{"role", "system"}, {"content", text}})) << field;
  }
  for (const char* none : {R"("system":null)", R"("system":"")", R"("system":[])",
                           R"("system":[{"type":"text","text":"x-anthropic-billing-header: v=1"}])"}) {
    EXPECT_EQ(chat_of(with_field(none))["messages"].size(), 1U) << none;
  }
}

TEST(AnthropicRequest, Fields) {
  // What the field becomes, as a part of the chat body; "null": nothing.
  const std::pair<const char*, const char*> cases[] = {
      {R"("max_tokens":7)", R"({"max_tokens":7})"},
      {R"("stop_sequences":["a","b"])", R"({"stop":["a","b"]})"},
      {R"("temperature":0.5,"top_p":0.9,"top_k":5)", R"({"temperature":0.5,"top_p":0.9,"top_k":5})"},
      {R"("stream":true,"model":"m","metadata":{"user_id":"u"})",
       R"({"stream":true,"model":"m","metadata":{"user_id":"u"}})"},
      {R"("session_id":"s","pool":"p","cache_prompt":false)", R"({"session_id":"s","pool":"p","cache_prompt":false})"},
      {R"("n":3,"n_predict":5,"stop":"x","logprobs":true,"stream_options":{})", "{}"},
      {R"("tools":[{"name":"ls","description":"d","input_schema":{"type":"object"},"cache_control":{}}])",
       R"({"tools":[{"type":"function","function":{"name":"ls","description":"d","parameters":{"type":"object"}}}]})"},
      {R"("tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"custom","name":"ls"}])",
       R"({"tools":[{"type":"function","function":{"name":"ls"}}]})"},
      {R"("tools":[{"type":"bash_20250124","name":"bash"}])", "{}"},
      {R"("tools":[])", "{}"},
      {R"("tool_choice":{"type":"auto"})", R"({"tool_choice":"auto"})"},
      {R"("tool_choice":{"type":"any"})", R"({"tool_choice":"required"})"},
      {R"("tool_choice":{"type":"none"})", R"({"tool_choice":"none"})"},
      {R"("tool_choice":{"type":"tool","name":"ls","disable_parallel_tool_use":true})",
       R"({"tool_choice":{"type":"function","function":{"name":"ls"}},"parallel_tool_calls":false})"},
      {R"("tool_choice":{"type":"auto","disable_parallel_tool_use":false})", R"({"tool_choice":"auto"})"},
      {R"("thinking":{"type":"enabled","budget_tokens":2048})",
       R"({"enable_thinking":true,"reasoning_budget_tokens":2048})"},
      {R"("thinking":{"type":"adaptive"})", R"({"enable_thinking":true})"},
      {R"("thinking":{"type":"disabled"})", R"({"enable_thinking":false})"},
      {R"("output_format":{"type":"json_schema","schema":{"type":"object"}})",
       R"({"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}})"},
      {R"("output_config":{"effort":"low","format":{"type":"json_schema","schema":{}}})",
       R"({"reasoning_effort":"low","response_format":{"type":"json_schema","json_schema":{"schema":{}}}})"},
      {R"("output_config":{"effort":"max"})", R"({"reasoning_effort":"high"})"},
      {R"("thinking":null,"tools":null,"tool_choice":null,"output_config":null,"stop_sequences":null)", "{}"},
  };
  for (const auto& [field, expected] : cases) {
    Json chat = chat_of(with_field(field));
    EXPECT_EQ(chat["messages"].size(), 1U) << field << chat;
    chat.erase("messages");
    EXPECT_EQ(chat, Json::parse(expected)) << field << chat;
  }
}

TEST(AnthropicRequest, MaxTokensIsNeededToGenerate) {
  EXPECT_EQ(chat_of(with_field(R"("a":1)"), AnthropicCall::create)["param"], "max_tokens");
  for (const char* wrong : {R"("max_tokens":0)", R"("max_tokens":-1)", R"("max_tokens":"5")", R"("max_tokens":1.5)"}) {
    EXPECT_EQ(chat_of(with_field(wrong), AnthropicCall::create)["param"], "max_tokens") << wrong;
  }
  EXPECT_EQ(chat_of(with_field(R"("max_tokens":1)"), AnthropicCall::create)["max_tokens"], 1);
}

TEST(AnthropicRequest, WrongFieldsAreNamed) {
  const std::pair<const char*, const char*> fields[] = {
      {R"("system":5)", "system"},
      {R"("system":[{"type":"image"}])", "system[0]"},
      {R"("system":[{"text":"a"}])", "system[0].type"},
      {R"("tools":{})", "tools"},
      {R"("tools":[5])", "tools[0]"},
      {R"("tools":[{"description":"d"}])", "tools[0].name"},
      {R"("tools":[{"name":5}])", "tools[0].name"},
      {R"("tool_choice":"auto")", "tool_choice"},
      {R"("tool_choice":{"type":"some"})", "tool_choice.type"},
      {R"("tool_choice":{"type":"tool"})", "tool_choice.name"},
      {R"("tool_choice":{"type":"auto","disable_parallel_tool_use":1})", "tool_choice.disable_parallel_tool_use"},
      {R"("thinking":true)", "thinking"},
      {R"("thinking":{"type":"on"})", "thinking.type"},
      {R"("thinking":{"type":"enabled","budget_tokens":-1})", "thinking.budget_tokens"},
      {R"("output_format":{"type":"text"})", "output_format.type"},
      {R"("output_format":{"type":"json_schema"})", "output_format.schema"},
      {R"("output_config":5)", "output_config"},
      {R"("output_config":{"format":{"type":"json_schema","schema":[]}})", "output_config.format.schema"},
      {R"("stop_sequences":"a")", "stop_sequences"},
      {R"("stop_sequences":[1])", "stop_sequences"},
  };
  for (const auto& [field, param] : fields) EXPECT_EQ(chat_of(with_field(field))["param"], param) << field;

  const std::pair<const char*, const char*> messages[] = {
      {"5", "messages[0]"},
      {R"({"content":"a"})", "messages[0].role"},
      {R"({"role":"tool","content":"a"})", "messages[0].role"},
      {R"({"role":"user"})", "messages[0].content"},
      {R"({"role":"user","content":5})", "messages[0].content"},
      {R"({"role":"user","content":["a"]})", "messages[0].content[0]"},
      {R"({"role":"user","content":[{"type":"text"}]})", "messages[0].content[0].text"},
      {R"({"role":"user","content":[{"type":"thinking","thinking":""}]})", "messages[0].content[0].type"},
      {R"({"role":"user","content":[{"type":"tool_result"}]})", "messages[0].content[0].tool_use_id"},
      {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":"yes"}]})",
       "messages[0].content[0].is_error"},
      {R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image"}]}]})",
       "messages[0].content[0].content[0]"},
      {R"({"role":"assistant","content":[{"type":"tool_use","name":"n"}]})", "messages[0].content[0].id"},
      {R"({"role":"assistant","content":[{"type":"tool_use","id":"t"}]})", "messages[0].content[0].name"},
      {R"({"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":"x"}]})",
       "messages[0].content[0].input"},
      {R"({"role":"assistant","content":[{"type":"thinking"}]})", "messages[0].content[0].thinking"},
      {R"({"role":"system","content":[{"type":"tool_result"}]})", "messages[0].content[0].type"},
  };
  for (const auto& [message, param] : messages) EXPECT_EQ(chat_of(with_messages(message))["param"], param) << message;
  EXPECT_EQ(chat_of(Json::parse("{}"))["param"], "messages");
  EXPECT_EQ(chat_of(Json::parse(R"({"messages":[]})"))["param"], "messages");
}

TEST(AnthropicRequest, ImagesAreRefusedInPlainWords) {
  for (const char* type : {"image", "document"}) {
    const Json block = {{"type", type}, {"source", {{"type", "base64"}}}};
    Json body = with_messages(R"({"role":"user","content":[]})");
    body["messages"][0]["content"].push_back(block);
    const std::string error = chat_of(body)["error"];
    EXPECT_NE(error.find("reads text only"), std::string::npos) << error;
  }
}

// ---- The form of the content does not matter

Json mark(Json block, bool marked) {
  if (marked) block["cache_control"] = {{"type", "ephemeral"}};
  return block;
}

// `text` as one string, one block, or two.
Json in_some_form(const std::string& text) {
  Json blocks = Json::array();
  const int form = *rc::gen::inRange(0, 3);
  if (form == 0) return text;
  const bool marked = *rc::gen::arbitrary<bool>();
  const auto newline = text.find('\n');
  if (form == 1 || newline == std::string::npos || newline == 0) {
    blocks.push_back(mark({{"type", "text"}, {"text", text}}, marked));
    return blocks;
  }
  blocks.push_back(mark({{"type", "text"}, {"text", text.substr(0, newline)}}, marked));
  blocks.push_back({{"type", "text"}, {"text", text.substr(newline + 1)}});
  return blocks;
}

RC_GTEST_PROP(AnthropicRequest, B22_StringsAndBlocksGiveTheSameChat, ()) {
  const auto text = rc::gen::container<std::string>(rc::gen::element('a', 'b', '\n', ' ', '"'));
  const auto system = *text;
  Json plain = {{"system", system}, {"messages", Json::array()}}, formed = plain;
  if (!system.empty()) formed["system"] = in_some_form(system);
  const int n = *rc::gen::inRange(1, 6);
  for (int i = 0; i < n; ++i) {
    const char* role = *rc::gen::element("user", "assistant", "system");
    const auto said = *text;
    plain["messages"].push_back({{"role", role}, {"content", said}});
    formed["messages"].push_back({{"role", role}, {"content", in_some_form(said)}});
    const auto result = *text;
    const auto message = [&](Json content) {
      Json block = {{"type", "tool_result"}, {"tool_use_id", "t"}, {"content", std::move(content)}};
      Json out = {{"role", "user"}, {"content", Json::array()}};
      out["content"].push_back(std::move(block));
      return out;
    };
    plain["messages"].push_back(message(result));
    formed["messages"].push_back(message(in_some_form(result)));
  }
  RC_ASSERT(chat_of(plain).dump() == chat_of(formed).dump());
}

}  // namespace
}  // namespace coppice::api
