// Spec B22, B23 end to end: what agents do turn after turn, over the three APIs, without being asked to help.
#include "support.h"

namespace coppice::http_test {
namespace {

Json weather_tool() {
  return {{"type", "function"},
          {"function",
           {{"name", "get_weather"},
            {"description", "Current weather of a city"},
            {"parameters",
             {{"type", "object"},
              {"properties", {{"city", {{"type", "string"}}}}},
              {"required", Json::array({"city"})}}}}}};
}

class Agents : public ServerTest {
 protected:
  static Json question() {
    return messages(
        {system("You are a careful agent. Use the facts and the tools."), user("What is the weather in Tavley?")});
  }
  Json chat(const Json& list) const {
    return client().ask(
        "/v1/chat/completions",
        {{"messages", list}, {"tools", Json::array({weather_tool()})}, {"temperature", 0}, {"max_tokens", 60}});
  }
  // What the model said, and the tool's answer to it.
  static Json with_result(Json list, Json said) {
    const std::string id = said["tool_calls"][0]["id"];
    list.push_back(std::move(said));
    list.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", "Tavley: rain, 12 degrees"}});
    return list;
  }
};

// Most clients parse a call's arguments and write them down again in their own way. One changed space is enough to make
// everything after it unknown to a server that only compares tokens.
TEST_F(Agents, B23_ReserialisedToolCallsGoOnFromTheExactTokens) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
  const Json first = chat(question());
  Json said = first["choices"][0]["message"];
  ASSERT_EQ(said["tool_calls"].size(), 1U) << first;
  const auto known = first["usage"]["total_tokens"].get<TokenPos>() - 1;  // the token that ended it is not evaluated
  said["tool_calls"][0]["function"]["arguments"] = "{   \"city\":\n\"Tavley\"   }";
  said["content"] = Json::array({Json{{"type", "text"}, {"text", ""}}});
  const Json second = chat(with_result(question(), said));
  EXPECT_EQ(second["coppice"]["continued"], true);
  EXPECT_EQ(second["coppice"]["reused"], known) << second["coppice"];
  EXPECT_NE(content(second).find("Tavley: rain"), std::string::npos) << second;
}

TEST_F(Agents, B23_AChangedMeaningIsNotPutBack) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
  Json said = chat(question())["choices"][0]["message"];
  said["tool_calls"][0]["function"]["arguments"] = R"({"city": "Lodwen"})";
  const Json second = chat(with_result(question(), said));
  EXPECT_EQ(second["coppice"]["continued"], false);
  const Json shown = client().ask(
      "/v1/explain", {{"messages", with_result(question(), said)}, {"tools", Json::array({weather_tool()})}});
  EXPECT_EQ(shown["nearest"]["common"], shown["prompt_tokens"]) << "what the client said is what was evaluated";
}

TEST_F(Agents, B23_OffMeansWhatTheTemplateMakesOfIt) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192", "--no-exact-continuation"}));
  const Json said = chat(question())["choices"][0]["message"];
  EXPECT_EQ(chat(with_result(question(), said))["coppice"]["continued"], false);
}

TEST_F(Agents, B22_AClientThatSendsNothingIsKnownByTheCallsThatItSendsBack) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "3", "-c", "8192"}));
  const Json first = chat(question());
  EXPECT_EQ(first["coppice"]["session"], nullptr);
  Json list = with_result(question(), first["choices"][0]["message"]);
  const Json second = chat(list);
  EXPECT_EQ(second["coppice"]["session_rule"], "minted.messages");
  EXPECT_EQ(second["coppice"]["session"], first["id"]);
  list.push_back(assistant(content(second)));
  list.push_back(user("Who are you?"));
  const Json third = chat(list);
  EXPECT_EQ(third["coppice"]["session"], first["id"]);
  EXPECT_EQ(third["coppice"]["slot"], second["coppice"]["slot"]);
}

TEST_F(Agents, B22_SubAgentsAreBranchesOfTheirParent) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
  const Json body = {{"messages", question()}, {"max_tokens", 4}};
  const auto ask = [&](const Headers& headers) {
    return client().post("/v1/chat/completions", body, headers).json()["coppice"];
  };
  const Json parent = ask({{"x-claude-code-session-id", "S"}});
  EXPECT_EQ(parent["session"], "S");
  EXPECT_EQ(parent["session_rule"], "header.x-claude-code-session-id");
  const Json child = ask({{"x-claude-code-session-id", "S"}, {"x-claude-code-agent-id", "7"}});
  EXPECT_EQ(child["session"], "S/7");
  EXPECT_EQ(child["parent_session"], "S");
  EXPECT_EQ(client().get("/v1/sessions/S%2F7").json()["parent"], "S");
}

TEST_F(Agents, AnthropicTurnsComputeOnlyWhatIsNew) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
  Json tool = {{"name", "get_weather"},
               {"description", "Current weather of a city"},
               {"input_schema", weather_tool()["function"]["parameters"]}};
  Json body = {
      {"model", "m"},
      {"max_tokens", 60},
      {"temperature", 0},
      {"system", Json::array({Json{
                     {"type", "text"},
                     {"text", "x-anthropic-billing-header: one\nYou are a careful agent. Use the facts and the tools."},
                     {"cache_control", {{"type", "ephemeral"}}}}})},
      {"tools", Json::array({tool})},
      {"messages", Json::array({user("What is the weather in Tavley?")})}};
  const Json first = client().ask("/v1/messages", body);
  ASSERT_EQ(first["stop_reason"], "tool_use") << first;
  const Json& use = first["content"].back();
  EXPECT_EQ(use["input"]["city"], "Tavley");
  const TokenPos known = first["usage"]["cache_creation_input_tokens"].get<TokenPos>() +
                         first["usage"]["output_tokens"].get<TokenPos>() - 1;
  // The client moves its marks and changes its billing line; neither is part of the conversation.
  body["system"][0] = {
      {"type", "text"},
      {"text", "x-anthropic-billing-header: two\nYou are a careful agent. Use the facts and the tools."}};
  body["messages"].push_back({{"role", "assistant"}, {"content", first["content"]}});
  body["messages"].push_back({{"role", "user"},
                              {"content", Json::array({Json{{"type", "tool_result"},
                                                            {"tool_use_id", use["id"]},
                                                            {"content", "Tavley: rain, 12 degrees"},
                                                            {"cache_control", {{"type", "ephemeral"}}}}})}});
  const Json second = client().ask("/v1/messages", body);
  EXPECT_EQ(second["stop_reason"], "end_turn");
  EXPECT_EQ(second["usage"]["cache_read_input_tokens"], known) << second;
  EXPECT_NE(second["content"][0]["text"].get<std::string>().find("Tavley: rain"), std::string::npos) << second;
}

TEST_F(Agents, ResponsesTurnsComputeOnlyWhatIsNew) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
  Json tool = weather_tool()["function"];
  tool["type"] = "function";
  Json body = {{"model", "m"},
               {"instructions", "You are a careful agent. Use the facts and the tools."},
               {"temperature", 0},
               {"max_output_tokens", 60},
               {"tools", Json::array({tool})},
               {"input", "What is the weather in Tavley?"}};
  const Json first = client().ask("/v1/responses", body);
  ASSERT_EQ(first["output"].back()["type"], "function_call") << first;
  const TokenPos known = first["usage"]["total_tokens"].get<TokenPos>() - 1;
  body["previous_response_id"] = first["id"];
  body["input"] = Json::array({Json{{"type", "function_call_output"},
                                    {"call_id", first["output"].back()["call_id"]},
                                    {"output", "Tavley: rain, 12 degrees"}}});
  const Json second = client().ask("/v1/responses", body);
  EXPECT_EQ(second["usage"]["input_tokens_details"]["cached_tokens"], known) << second["coppice"];
  EXPECT_EQ(second["coppice"]["continued"], true);
  EXPECT_EQ(second["coppice"]["session_rule"], "minted.previous_response_id");
  EXPECT_NE(second["output"][0]["content"][0]["text"].get<std::string>().find("Tavley: rain"), std::string::npos)
      << second;
}

// The model calls twice for a question about two cities, and its template's grammar lets it.
TEST_F(Agents, OneCallIsAllThatComesWhereParallelOnesAreNotWanted) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
  Json list = question();
  list.back() = user("What is the weather in Tavley and Lodwen?");
  Json body = {{"messages", list}, {"tools", Json::array({weather_tool()})}, {"temperature", 0}, {"max_tokens", 80}};
  const Json both = client().ask("/v1/chat/completions", body);
  ASSERT_EQ(both["choices"][0]["message"]["tool_calls"].size(), 2U) << both;
  const Json first_call = both["choices"][0]["message"]["tool_calls"][0]["function"];
  body["parallel_tool_calls"] = false;
  const Json one = client().ask("/v1/chat/completions", body);
  ASSERT_EQ(one["choices"][0]["message"]["tool_calls"].size(), 1U) << one;
  EXPECT_EQ(one["choices"][0]["message"]["tool_calls"][0]["function"], first_call);
  EXPECT_EQ(one["choices"][0]["message"]["content"], nullptr);
  EXPECT_EQ(one["choices"][0]["finish_reason"], "tool_calls");
  body["stream"] = true;
  const Events events = collect(client().stream("/v1/chat/completions", body));
  EXPECT_TRUE(events.done);
  std::string arguments;
  for (const Json& event : events.list) {
    const Json& delta = event["choices"].at(0)["delta"];
    if (!delta.contains("tool_calls")) continue;
    EXPECT_EQ(delta["tool_calls"][0]["index"], 0);
    arguments += delta["tool_calls"][0]["function"]["arguments"].get<std::string>();
  }
  EXPECT_EQ(arguments, first_call["arguments"]);
  EXPECT_EQ(events.last()["choices"][0]["finish_reason"], "tool_calls");
}

TEST_F(Agents, TheServerSaysWhatItRemembersAndHowItRenders) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
  EXPECT_EQ(client().get("/props").json()["late_system_messages"],
            Json({{"template", "in_place"}, {"rendered_as", "system"}, {"in_place", true}}));
  EXPECT_NE(server().program().standard_error().find("late system messages"), std::string::npos);
  EXPECT_EQ(metric("coppice_turns_remembered"), 0);
  chat(question());
  EXPECT_EQ(metric("coppice_turns_remembered"), 1);
  EXPECT_GT(metric("coppice_turns_remembered_bytes"), 100);
}

TEST_F(Agents, WithoutTurnMemoryNothingIsRemembered) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192", "--turn-memory", "0", "--response-store", "0"}));
  const Json said = chat(question())["choices"][0]["message"];
  EXPECT_EQ(metric("coppice_turns_remembered"), 0);
  EXPECT_EQ(chat(with_result(question(), said))["coppice"]["continued"], false);
  const Json response = client().ask("/v1/responses", {{"input", "Who are you?"}});
  EXPECT_EQ(client().get("/v1/responses/" + response["id"].get<std::string>()).status, 404);
}

}  // namespace
}  // namespace coppice::http_test
