// Requests in the shape that agent clients send them, reduced to what matters: if a client changes, its new shape goes
// in here first.
#include <gtest/gtest.h>

#include "api/fakes.h"
#include "api/sse_for_test.h"

namespace coppice::api {
namespace {

// Codex 0.171: everything in `input`, nothing stored, ids stripped, reasoning as encrypted_content alone, tools of
// servers in namespaces, hosted tools beside them.
constexpr const char* kCodexTools = R"("tools":[
    {"type":"function","name":"exec_command","description":"Runs a command.","strict":false,
     "parameters":{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"],"additionalProperties":false}},
    {"type":"custom","name":"apply_patch","description":"Edits files.",
     "format":{"type":"grammar","syntax":"lark","definition":"start: /.+/"}},
    {"type":"namespace","name":"mcp__notes","description":"Notes.",
     "tools":[{"type":"function","name":"search","parameters":{"type":"object","properties":{}}}]},
    {"type":"web_search","external_web_access":false}])";
constexpr const char* kCodexRest = R"("model":"m","instructions":"You are an agent.","tool_choice":"auto",
    "parallel_tool_calls":true,"reasoning":{"effort":"medium","summary":"auto"},"store":false,"stream":true,
    "include":["reasoning.encrypted_content"],"prompt_cache_key":"0190-key","text":{"verbosity":"low"},
    "client_metadata":{"x":"y"})";
constexpr const char* kCodexFirst = R"(
    {"type":"message","role":"developer","content":[{"type":"input_text","text":"Rules."}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>cwd</environment_context>"}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"List the files."}]})";

std::string codex(const std::string& items) {
  return std::string("{") + kCodexRest + "," + kCodexTools + R"(,"input":[)" + kCodexFirst + items + "]}";
}

struct RoomyServer : FakeServer {
  RoomyServer() { model.n_ctx = 4096; }
};

TEST(ResponsesClients, CodexFirstTurn) {
  RoomyServer server;
  auto answer = server.post("/v1/responses", codex(""));
  ASSERT_EQ(server.engine.requests.size(), 1U) << answer->response.body;
  const Json& chat = server.templates.rendered;
  EXPECT_EQ(chat["messages"].dump(),
            R"([{"role":"system","content":"You are an agent."},{"role":"developer","content":"Rules."},)"
            R"({"role":"user","content":"<environment_context>cwd</environment_context>"},)"
            R"({"role":"user","content":"List the files."}])");
  ASSERT_EQ(chat["tools"].size(), 3U);
  EXPECT_EQ(chat["tools"][2]["function"]["name"], "mcp__notes__search");
  EXPECT_EQ(chat["tool_choice"], "auto");
  EXPECT_EQ(chat["reasoning_effort"], "medium");
  EXPECT_EQ(chat["prompt_cache_key"], "0190-key") << "names the session";
  for (const char* text : {"Rlook", "Tmcp__notes__search", "A{}"}) server.engine.text(0, text);
  server.engine.finish(0);
  answer->run();
  const Json response = sse_events(answer->written).back().data["response"];
  EXPECT_FALSE(response["output"][0]["encrypted_content"].get<std::string>().empty());
  EXPECT_EQ(response["output"][1]["namespace"], "mcp__notes");
  EXPECT_EQ(response["output"][1]["name"], "search");
}

TEST(ResponsesClients, CodexTurnsInAToolLoop) {
  RoomyServer server;
  auto answer = server.post("/v1/responses", codex(R"(,
      {"type":"reasoning","summary":[],"encrypted_content":"rs_1"},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
      {"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"call_1"},
      {"type":"function_call","name":"search","namespace":"mcp__notes","arguments":"{}","call_id":"call_2"},
      {"type":"function_call_output","call_id":"call_1","output":"a.txt"},
      {"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"none"}]},
      {"type":"reasoning","summary":[],"encrypted_content":"rs_2"},
      {"type":"custom_tool_call","status":"completed","call_id":"call_3","name":"apply_patch","input":"*** Begin Patch\n"},
      {"type":"custom_tool_call_output","call_id":"call_3","output":"Success."})"));
  ASSERT_EQ(server.engine.requests.size(), 1U) << answer->response.body;
  const Json& messages = server.templates.rendered["messages"];
  ASSERT_EQ(messages.size(), 9U);
  EXPECT_EQ(messages[4].dump(),
            R"({"role":"assistant","content":"I look.","tool_calls":[)"
            R"({"id":"call_1","type":"function","function":{"name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}},)"
            R"({"id":"call_2","type":"function","function":{"name":"mcp__notes__search","arguments":"{}"}}]})");
  EXPECT_EQ(messages[5]["content"], "a.txt");
  EXPECT_EQ(messages[6]["content"], "none");
  EXPECT_EQ(messages[7]["tool_calls"][0]["function"]["arguments"], R"({"input":"*** Begin Patch\n"})");
  EXPECT_EQ(messages[8].dump(), R"({"role":"tool","tool_call_id":"call_3","content":"Success."})");
}

// opencode on @ai-sdk/openai: the system prompt as a message, ids kept, item references when the server stores.
TEST(ResponsesClients, AiSdkToolLoop) {
  RoomyServer server;
  const std::string first = R"("model":"m","stream":true,"store":true,
      "tools":[{"type":"function","name":"read","description":"","parameters":{"type":"object","properties":{}},"strict":false}],
      "tool_choice":"auto","input":[{"role":"developer","content":"Be brief."},{"role":"user","content":[{"type":"input_text","text":"hi"}]})";
  auto answer = server.post("/v1/responses", "{" + first + "]}");
  server.engine.text(0, "Tread");
  server.engine.finish(0);
  answer->run();
  const Json call = sse_events(answer->written).back().data["response"]["output"][0];
  server.post("/v1/responses", "{" + first + R"(,{"type":"item_reference","id":)" + call["id"].dump() +
                                   R"(},{"type":"function_call_output","call_id":"call_0","output":"text"}]})");
  ASSERT_EQ(server.engine.requests.size(), 2U);
  EXPECT_EQ(
      server.templates.rendered["messages"].dump(),
      R"([{"role":"developer","content":"Be brief."},{"role":"user","content":"hi"},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"read","arguments":"{}"}}]},)"
      R"({"role":"tool","tool_call_id":"call_0","content":"text"}])");
}

}  // namespace
}  // namespace coppice::api
