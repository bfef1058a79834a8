// The built-in model as a semantic oracle: it copies facts from its context, so KV that is lost, taken from another
// agent or put in a wrong place shows in the answer. All expected answers were right on a cold cache.
#include <array>
#include <thread>

#include "support.h"

namespace coppice::http_test {
namespace {

Json tool(const char* name, const Json& properties) {
  return {{"type", "function"},
          {"function", {{"name", name}, {"parameters", {{"type", "object"}, {"properties", properties}}}}}};
}

Json string_property(const char* name) { return {{name, {{"type", "string"}}}}; }

struct Agent {
  std::string name, code;
  Json history;
  std::string told() const { return "Remember: The code of " + name + " is " + code + "."; }
  std::string asked(int turn) const {
    return turn % 2 == 0 ? "What is the code of " + name + "?" : "Tell me the code of " + name + ".";
  }
  std::string answer() const { return "The code of " + name + " is " + code + "."; }
};

std::vector<Agent> make_agents(const std::string& base) {
  constexpr std::array<std::pair<const char*, const char*>, 6> kSecrets = {{{"Zorbin", "4821"},
                                                                            {"Velmin", "5434"},
                                                                            {"Tirgan", "6047"},
                                                                            {"Tavley", "6660"},
                                                                            {"Lodwen", "7273"},
                                                                            {"Marpin", "7886"}}};
  std::vector<Agent> agents;
  for (const auto& [name, code] : kSecrets) {
    Agent agent{name, code, messages({system("Answer briefly.\n" + base)})};
    agent.history.push_back(user(agent.told()));
    agent.history.push_back(assistant("OK, noted."));
    agents.push_back(std::move(agent));
  }
  return agents;
}

class Semantics : public ServerTest {
 protected:
  // Asks and appends question and answer to the agent's history.
  void ask(Agent& agent, int turn, Json body) const {
    agent.history.push_back(user(agent.asked(turn)));
    body["messages"] = agent.history;
    body["temperature"] = 0;
    const Json answer = client().ask("/v1/chat/completions", body);
    if (answer.is_null()) return;
    EXPECT_EQ(content(answer), agent.answer()) << answer.dump();
    agent.history.push_back(assistant(content(answer)));
  }
};

TEST_F(Semantics, EachAgentGetsItsOwnSecretInTurnsWithoutSessions) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "3"}));  // half as many slots as agents: they push each other out
  std::vector<Agent> agents = make_agents(filler(15, 20));
  for (int turn = 0; turn < 3; ++turn) {
    for (Agent& agent : agents) ask(agent, turn, {});
  }
}

TEST_F(Semantics, EachAgentGetsItsOwnSecretInTurnsWithSessions) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "4"}));
  std::vector<Agent> agents = make_agents(filler(5, 20));
  for (int turn = 0; turn < 3; ++turn) {
    for (Agent& agent : agents) ask(agent, turn, {{"session_id", agent.name}});
  }
}

TEST_F(Semantics, EachAgentGetsItsOwnSecretWhenTheyShareTheBaseAndAskAtOnce) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "7", "-c", "1536"}));  // a copy of the base for each would not fit
  std::vector<Agent> agents = make_agents(filler(17, 20));
  const Tokens one = tokens_of(agents[0].history), two = tokens_of(agents[1].history);
  const TokenPos base = common_prefix(one, two);
  client().ask("/completion", {{"prompt", first(one, base)}, {"n_predict", 0}, {"id_slot", 0}});
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < agents.size(); ++i) {
      threads.emplace_back([&, i] {
        ask(agents[i], turn,
            {{"session_id", agents[i].name},
             {"id_slot", i + 1},
             {"shared_pool_slot", 0},
             {"shared_prefix_n_tokens", base}});
      });
    }
  }
  EXPECT_EQ(slot(0)["n_held"], base);
}

// A wrong session key costs speed, never correctness (spec A4).
TEST_F(Semantics, A4_AgentsThatUseOneSessionKeyStillGetTheirOwnSecret) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "3"}));
  std::vector<Agent> agents = make_agents(filler(11, 20));
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<std::jthread> threads;
    for (Agent& agent : agents) {
      threads.emplace_back([&] { ask(agent, turn, {{"session_id", "the same"}}); });
    }
  }
}

TEST_F(Semantics, A4_ASecretIsNotKnownToAnAgentThatWasNotTold) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "1"}));  // the one slot holds the other's secret
  const std::string base = "Answer briefly.\n" + filler(3, 4);
  const auto answer = [&](const Json& history) {
    return content(client().ask("/v1/chat/completions", {{"messages", history}, {"temperature", 0}}));
  };
  EXPECT_EQ(answer(messages({system(base + "\nThe code of Zorbin is 4821."), user("What is the code of Zorbin?")})),
            "The code of Zorbin is 4821.");
  EXPECT_EQ(answer(messages({system(base + "\nThe code of Velmin is 5434."), user("What is the code of Zorbin?")})),
            "I do not know.");
}

TEST_F(Semantics, FactsOfAllKindsSurviveReuse) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2"}));
  const std::string facts =
      "Answer briefly.\nThe code of Zorbin is 48213. The code of Velmin is KX-77. The room of Zorbin is 12.\n"
      "max_depth: 64\nmax_width: 9\nsail_limit: KTR-906\nIn the cellar: lamps 14, ropes 250.";
  const std::array<std::pair<const char*, const char*>, 6> questions = {
      {{"What is the code of Velmin?", "The code of Velmin is KX-77."},
       {"What is sail_limit set to?", "sail_limit: KTR-906"},
       {"What is the code of Tirgan?", "I do not know."},
       {"What is max_depth set to?", "max_depth: 64"},
       {"How many ropes are in the cellar?", "In the cellar: ropes 250."},
       {"What is the value of max_width?", "max_width: 9"}}};
  for (int round = 0; round < 2; ++round) {
    for (const auto& [question, right] : questions) {
      const Json answer = client().ask(
          "/v1/chat/completions",
          {{"messages", messages({system(facts), user(question)})}, {"temperature", 0}, {"session_id", "facts"}});
      EXPECT_EQ(content(answer), right);
      EXPECT_GT(answer["coppice"]["reused"], answer["coppice"]["reason"] == "new" ? -1 : 60);
    }
  }
}

TEST_F(Semantics, AToolLoopCallsTheRightToolsAndReadsTheirResults) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2"}));
  Json body = {
      {"tools", Json::array({tool("list_files", string_property("path")), tool("read_file", string_property("path")),
                             tool("search", string_property("query"))})},
      {"temperature", 0},
      {"session_id", "loop"}};
  body["messages"] = messages({system("You are a careful agent. Use the facts and the tools."),
                               user("Read the file about budget in the folder forest.")});
  const std::array<std::pair<Json, const char*>, 2> steps = {
      {{{{"name", "list_files"}, {"path", "forest"}}, "draft.md\nbudget.txt\nsignal.csv"},
       {{{"name", "read_file"}, {"path", "forest/budget.txt"}}, "rope 12 candle 7 total 19"}}};
  TokenPos held = 0;
  for (const auto& [expected, result] : steps) {
    const Json answer = client().ask("/v1/chat/completions", body);
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "tool_calls");
    const Json message = answer["choices"][0]["message"];
    const Json& calls = message["tool_calls"];
    ASSERT_EQ(calls.size(), 1U) << answer.dump();
    EXPECT_EQ(calls[0]["function"]["name"], expected["name"]);
    EXPECT_EQ(Json::parse(calls[0]["function"]["arguments"].get<std::string>())["path"], expected["path"]);
    EXPECT_EQ(answer["coppice"]["reused"], held);
    held = answer["usage"]["prompt_tokens"].get<TokenPos>() + answer["usage"]["completion_tokens"].get<TokenPos>() - 1;
    body["messages"].push_back(message);
    body["messages"].push_back({{"role", "tool"}, {"tool_call_id", calls[0]["id"]}, {"content", result}});
  }
  const Json answer = client().ask("/v1/chat/completions", body);
  EXPECT_EQ(content(answer), "forest/budget.txt says: rope 12 candle 7 total 19");
  EXPECT_EQ(answer["coppice"]["reused"], held);
}

}  // namespace
}  // namespace coppice::http_test
