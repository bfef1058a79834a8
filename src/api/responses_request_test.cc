// Responses requests as Chat Completions bodies.
#include "api/responses_request.h"

#include <gtest/gtest.h>

namespace coppice::api {
namespace {

Result<ResponsesRequest> read_responses_body(const std::string& body, const std::string& history = "[]") {
  return read_responses_request(Json::parse(body), Json::parse(history), [](std::string_view id) {
    return id == "msg_known_0" ? std::optional(Json::parse(R"({"type":"message","role":"user","content":"known"})"))
                               : std::nullopt;
  });
}

std::string messages_of(const std::string& input) {
  const auto request = read_responses_body(R"({"input":)" + input + "}");
  return request ? request->chat["messages"].dump() : request.error().message;
}

struct Items {
  const char* input;
  const char* messages;
};

TEST(ResponsesRequest, ItemsBecomeMessages) {
  const Items cases[] = {
      {R"("hi")", R"([{"role":"user","content":"hi"}])"},
      {R"([{"role":"user","content":"hi"}])", R"([{"role":"user","content":"hi"}])"},
      {R"([{"type":"message","role":"developer","content":[{"type":"input_text","text":"a"},{"type":"text","text":"b"}]}])",
       R"([{"role":"developer","content":"a\nb"}])"},
      {R"([{"role":"system","content":"s"},{"role":"user","content":null}])",
       R"([{"role":"system","content":"s"},{"role":"user","content":""}])"},
      {R"([{"role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]}])",
       R"([{"role":"assistant","content":"a\nno"}])"},
      {R"([{"type":"item_reference","id":"msg_known_0"}])", R"([{"role":"user","content":"known"}])"},
      {R"([{"role":"user","content":"a"},{"type":"web_search_call","id":"ws_1"},{"type":"future"},{"role":"user","content":"b"}])",
       R"([{"role":"user","content":"a"},{"role":"user","content":"b"}])"},
  };
  for (const Items& c : cases) EXPECT_EQ(messages_of(c.input), c.messages) << c.input;
}

// One answer of a model is one message again, whatever its items.
TEST(ResponsesRequest, ItemsOfOneAnswerAreOneMessage) {
  const std::string call = R"({"type":"function_call","call_id":"c1","name":"f","arguments":"{}"})";
  const std::string calls = R"("tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}])";
  const std::string say = R"({"type":"message","role":"assistant","content":"say"})";
  const std::string think = R"({"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"t"}]})";
  const Items cases[] = {
      {"think,say", R"([{"role":"assistant","content":"say","reasoning_content":"t"}])"},
      {"think,call", R"([{"role":"assistant","content":null,"reasoning_content":"t",CALLS}])"},
      {"think,say,call", R"([{"role":"assistant","content":"say","reasoning_content":"t",CALLS}])"},
      {"call,say", R"([{"role":"assistant","content":"say",CALLS}])"},
      {"say,call,say", R"([{"role":"assistant","content":"saysay",CALLS}])"},
      {"say,say", R"([{"role":"assistant","content":"say\nsay"}])"},
      {"say,think,call",
       R"([{"role":"assistant","content":"say"},{"role":"assistant","content":null,"reasoning_content":"t",CALLS}])"},
      {"think,think,say", R"([{"role":"assistant","content":"say","reasoning_content":"t\nt"}])"},
  };
  const auto fill = [&](std::string text, const std::string& word, const std::string& with) {
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + with.size())) {
      text.replace(at, word.size(), with);
    }
    return text;
  };
  for (const Items& c : cases) {
    const std::string input = "[" + fill(fill(fill(c.input, "think", think), "call", call), "say,", say + ",") + "]";
    const std::string whole = fill(input, ",say]", "," + say + "]");
    EXPECT_EQ(messages_of(whole), fill(c.messages, "CALLS", calls)) << c.input;
  }
}

TEST(ResponsesRequest, ReasoningIsItsTextElseItsSummary) {
  const auto reasoning = [](const std::string& fields) {
    return messages_of(R"([{"type":"reasoning",)" + fields + R"(},{"role":"assistant","content":"a"}])");
  };
  const std::string with_summary = R"([{"role":"assistant","content":"a","reasoning_content":"sum"}])";
  EXPECT_EQ(reasoning(R"("summary":[{"type":"summary_text","text":"sum"}])"), with_summary);
  EXPECT_EQ(reasoning(R"("summary":[{"type":"summary_text","text":"sum"}],"content":null)"), with_summary);
  EXPECT_EQ(
      reasoning(R"("summary":[{"type":"summary_text","text":"s"}],"content":[{"type":"reasoning_text","text":"t"}])"),
      R"([{"role":"assistant","content":"a","reasoning_content":"t"}])");
  EXPECT_EQ(reasoning(R"("summary":[],"encrypted_content":"rs_1")"), R"([{"role":"assistant","content":"a"}])");
}

TEST(ResponsesRequest, OutputsOfCalls) {
  EXPECT_EQ(
      messages_of(R"([{"type":"function_call","call_id":"c","name":"f"},
                            {"type":"function_call_output","call_id":"c","output":"done"},
                            {"type":"custom_tool_call","call_id":"d","name":"patch","input":"a\"b"},
                            {"type":"custom_tool_call_output","call_id":"d","output":[{"type":"input_text","text":"x"},{"type":"output_text","text":"y"}]}])"),
      R"([{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]},)"
      R"({"role":"tool","tool_call_id":"c","content":"done"},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"d","type":"function","function":{"name":"patch","arguments":"{\"input\":\"a\\\"b\"}"}}]},)"
      R"({"role":"tool","tool_call_id":"d","content":"x\ny"}])");
}

TEST(ResponsesRequest, InstructionsComeFirstThenTheHistory) {
  const auto request = read_responses_body(R"({"instructions":"be brief","input":"more"})",
                                           R"([{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}])");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->has_instructions);
  EXPECT_EQ(request->chat["messages"].dump(),
            R"([{"role":"system","content":"be brief"},{"role":"user","content":"hi"},)"
            R"({"role":"assistant","content":"yes"},{"role":"user","content":"more"}])");
  EXPECT_EQ(request->input.dump(),
            R"([{"type":"message","role":"user","content":[{"type":"input_text","text":"more"}]}])");
}

TEST(ResponsesRequest, Fields) {
  const auto request =
      read_responses_body(R"({"model":"m","input":"hi","max_output_tokens":9,"temperature":0.5,"top_p":0.9,"stop":["x"],
      "reasoning":{"effort":"low","summary":"auto"},"session_id":"s","previous_response_id":"resp_1",
      "prompt_cache_key":"k","metadata":{"a":"b"},"store":false,"include":["reasoning.encrypted_content"],
      "truncation":"auto","top_logprobs":3,"n":4,"stream":true,"parallel_tool_calls":false,"id_slot":1,
      "text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"}},"verbosity":"low"}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_FALSE(request->store);
  Json chat = request->chat;
  chat.erase("messages");
  const Json expected = Json::parse(R"({"model":"m","temperature":0.5,"top_p":0.9,"stop":["x"],"session_id":"s",
      "previous_response_id":"resp_1","prompt_cache_key":"k","metadata":{"a":"b"},"store":false,"stream":true,
      "parallel_tool_calls":false,"id_slot":1,"reasoning_effort":"low","max_completion_tokens":9,
      "response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}})");
  // The order of keys says nothing here.
  EXPECT_EQ(nlohmann::json::parse(chat.dump()), nlohmann::json::parse(expected.dump()));
}

TEST(ResponsesRequest, TextFormats) {
  const auto format = [](const std::string& text) {
    const auto request = read_responses_body(R"({"input":"hi","text":)" + text + "}");
    return request ? request->chat.value("response_format", Json()).dump() : request.error().param;
  };
  EXPECT_EQ(format("null"), "null");
  EXPECT_EQ(format("{}"), "null");
  EXPECT_EQ(format(R"({"format":{"type":"text"}})"), "null");
  EXPECT_EQ(format(R"({"format":{"type":"json_object"}})"), R"({"type":"json_object"})");
  EXPECT_EQ(format(R"({"format":{"type":"json_schema"}})"), "text.format.schema");
  EXPECT_EQ(format(R"({"format":{"type":"xml"}})"), "text.format.type");
  EXPECT_EQ(format(R"({"format":1})"), "text.format");
  EXPECT_EQ(format("1"), "text");
}

TEST(ResponsesRequest, ErrorsNameTheField) {
  struct Wrong {
    const char* body;
    const char* param;
  };
  const Wrong cases[] = {
      {R"({})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":7})", "input"},
      {R"({"input":[7]})", "input[0]"},
      {R"({"input":[{}]})", "input[0].type"},
      {R"({"input":[{"type":7}]})", "input[0].type"},
      {R"({"input":[{"role":"robot","content":"x"}]})", "input[0].role"},
      {R"({"input":[{"type":"message","content":"x"}]})", "input[0].role"},
      {R"({"input":[{"role":"user","content":7}]})", "input[0].content"},
      {R"({"input":[{"role":"user","content":["x"]}]})", "input[0].content[0]"},
      {R"({"input":[{"role":"user","content":[{"text":"x"}]}]})", "input[0].content[0].type"},
      {R"({"input":[{"role":"user","content":[{"type":"input_text"}]}]})", "input[0].content[0].text"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]})", "input[0].content[0]"},
      {R"({"input":[{"role":"user","content":[{"type":"input_file","file_id":"x"}]}]})", "input[0].content[0]"},
      {R"({"input":[{"role":"user","content":[{"type":"sound"}]}]})", "input[0].content[0].type"},
      {R"({"input":[{"type":"function_call","name":"f"}]})", "input[0].call_id"},
      {R"({"input":[{"type":"function_call","call_id":"c"}]})", "input[0].name"},
      {R"({"input":[{"type":"function_call","call_id":"c","name":"f","arguments":{}}]})", "input[0].arguments"},
      {R"({"input":[{"type":"function_call_output","output":"x"}]})", "input[0].call_id"},
      {R"({"input":[{"type":"function_call_output","call_id":"c","output":7}]})", "input[0].output"},
      {R"({"input":[{"type":"reasoning","summary":7}]})", "input[0].summary"},
      {R"({"input":"x","instructions":[]})", "instructions"},
      {R"({"input":"x","max_output_tokens":0})", "max_output_tokens"},
      {R"({"input":"x","reasoning":"high"})", "reasoning"},
      {R"({"input":"x","reasoning":{"effort":3}})", "reasoning.effort"},
      {R"({"input":"x","store":"yes"})", "store"},
      {R"({"input":"x","metadata":"yes"})", "metadata"},
      {R"({"input":"x","background":true})", "background"},
      {R"({"input":"x","prompt":{"id":"p"}})", "prompt"},
      {R"({"input":"x","conversation":"c"})", "conversation"},
      {R"({"input":"x","tools":{}})", "tools"},
  };
  for (const Wrong& c : cases) {
    const auto request = read_responses_body(c.body);
    ASSERT_FALSE(request) << c.body;
    EXPECT_EQ(request.error().kind, ErrorKind::invalid_request) << c.body;
    EXPECT_EQ(request.error().param, c.param) << c.body;
  }
}

TEST(ResponsesRequest, AnUnknownItemReferenceIsNotFound) {
  const auto request = read_responses_body(R"({"input":[{"type":"item_reference","id":"msg_gone_0"}]})");
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().kind, ErrorKind::not_found);
  EXPECT_NE(request.error().message.find("msg_gone_0"), std::string::npos);
}

}  // namespace
}  // namespace coppice::api
