// Spec B25 end to end: after an answer the server prepares what the next prompt begins with, so that the user's next
// message computes little more than itself, although the template renders the past anew.
#include "families.h"

namespace coppice::http_test {
namespace {

struct Drifting {
  const char* family;
  const char* chat_template;  // of the release
  const char* answer;         // GBNF
};

void PrintTo(const Drifting& d, std::ostream* out) { *out << d.family << " " << d.chat_template; }

constexpr const char* kQwenAnswer = R"(root ::= "<think>\nThat is clear now.\n</think>\n\nIt is warmer in Turku.")";
constexpr const char* kHarmonyAnswer =
    R"(root ::= "<|channel|>analysis<|message|>That is clear now.<|end|><|start|>assistant<|channel|>final<|message|>)"
    R"(It is warmer in Turku.")";

constexpr TokenPos kAllowed = 80;  // beside the message's own tokens

Json weather_tools() {
  return Json::parse(R"([{"type": "function", "function": {"name": "get_weather", "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])");
}

class IdlePrefill : public ServerTest {
 protected:
  void serve_drifting(const Drifting& with, std::vector<std::string> more = {}) {
    more.insert(more.end(),
                {"-m", random_model(with.family), "--chat-template-file",
                 std::string(COPPICE_TEMPLATE_DIR) + "/" + with.chat_template + ".jinja", "-np", "2", "-c", "16384"});
    answer_ = with.answer;
    serve(more);
  }

  // A question and three tool steps, with the thoughts of the model.
  static Json three_steps() {
    Json list = messages({system("You know the weather. " + filler(1, 5)), user("Where is it warmer?")});
    for (int i = 1; i <= 3; ++i) {
      const std::string id = "abcdefgh" + std::to_string(i);
      const Json function = {{"name", "get_weather"}, {"arguments", R"({"city": "Turku"})"}};
      list.push_back({{"role", "assistant"},
                      {"content", ""},
                      {"reasoning_content", "Step " + std::to_string(i) + ". " + filler(10 + i, 4)},
                      {"tool_calls", Json::array({{{"id", id}, {"type", "function"}, {"function", function}}})}});
      list.push_back({{"role", "tool"}, {"tool_call_id", id}, {"name", "get_weather"}, {"content", filler(20 + i, 4)}});
    }
    return list;
  }

  Json chat(const Json& list, const Json& more = Json::object()) const {
    Json body = {{"messages", list},  {"tools", weather_tools()}, {"tool_choice", "none"}, {"session_id", "S"},
                 {"max_tokens", 200}, {"grammar", answer_},       {"temperature", 0}};
    body.update(more);
    return client().ask("/v1/chat/completions", body);
  }
  static Json with(Json list, const Json& answer, const std::string& words) {
    list.push_back(answer["choices"][0]["message"]);
    list.push_back(user(words));
    return list;
  }
  // Of answered turns.
  double turns(const std::string& result) const {
    return metric("coppice_next_turns_total{result=\"" + result + "\"}");
  }
  double background(const std::string& result) const {
    return metric("coppice_background_tokens_total{result=\"" + result + "\"}");
  }
  TokenPos own(const std::string& words) const { return length(tokenize(words)); }
  static TokenPos computed(const Json& answer) { return answer["coppice"]["computed"].get<TokenPos>(); }

  const std::string more_ = "And tomorrow? " + filler(30, 2);
  std::string answer_;
};

class IdlePrefillFamilies : public IdlePrefill, public ::testing::WithParamInterface<Drifting> {};

TEST_P(IdlePrefillFamilies, B25_AfterToolStepsAndAnAnswerTheUsersMessageComputesItself) {
  ASSERT_NO_FATAL_FAILURE(serve_drifting(GetParam()));
  const Json list = three_steps(), first = chat(list);
  ASSERT_EQ(first["choices"][0]["finish_reason"], "stop") << first;
  ASSERT_TRUE(eventually([&] { return turns("prepared") == 1; })) << client().get("/metrics").body;
  const Json second = chat(with(list, first, more_));
  EXPECT_LE(computed(second), own(more_) + kAllowed) << second["coppice"];
  EXPECT_EQ(second["coppice"]["source"], "prepared") << second["coppice"];
  EXPECT_GT(second["coppice"]["prepared"], kAllowed);
  EXPECT_GE(background("used"), second["coppice"]["prepared"].get<double>());

  // And again: what is prepared next goes on from there.
  const double before = background("computed");
  ASSERT_TRUE(eventually([&] { return turns("prepared") == 2 || turns("held") == 1; }))
      << client().get("/metrics").body;
  EXPECT_LE(background("computed") - before, own(more_) + kAllowed);
  const Json third = chat(with(with(list, first, more_), second, "Thanks."));
  EXPECT_LE(computed(third), own("Thanks.") + kAllowed) << third["coppice"];
}

TEST_P(IdlePrefillFamilies, B25_OffTheSameComputesTheLoopAgain) {
  ASSERT_NO_FATAL_FAILURE(serve_drifting(GetParam(), {"--idle-prefill", "off"}));
  const Json list = three_steps(), first = chat(list);
  const Json second = chat(with(list, first, more_), {{"idle_prefill", true}});
  EXPECT_GT(computed(second), own(more_) + 2 * kAllowed) << "else this proves nothing: " << second["coppice"];
  EXPECT_EQ(second["coppice"]["prepared"], 0);
  EXPECT_EQ(turns("submitted"), -1);
}

INSTANTIATE_TEST_SUITE_P(Families, IdlePrefillFamilies,
                         ::testing::Values(Drifting{"qwen3", "Qwen-Qwen3-0.6B", kQwenAnswer},
                                           Drifting{"qwen35", "Qwen-Qwen3-0.6B", kQwenAnswer},
                                           Drifting{"gpt-oss", "openai-gpt-oss-120b", kHarmonyAnswer}),
                         [](const auto& info) {
                           std::string name = info.param.family;
                           std::erase(name, '-');
                           return name;
                         });

constexpr Drifting kQwen3{"qwen3", "Qwen-Qwen3-0.6B", kQwenAnswer};

TEST_F(IdlePrefill, B25_ARequestCanOptOut) {
  ASSERT_NO_FATAL_FAILURE(serve_drifting(kQwen3));
  const Json list = three_steps(), first = chat(list, {{"idle_prefill", false}});
  const Json second = chat(with(list, first, more_), {{"idle_prefill", false}});
  EXPECT_GT(computed(second), own(more_) + kAllowed);
  EXPECT_EQ(turns("submitted"), -1);
  const Response bad = client().post("/v1/chat/completions", {{"messages", list}, {"idle_prefill", "maybe"}});
  EXPECT_EQ(bad.status, 400);
  EXPECT_NE(bad.body.find("idle_prefill"), std::string::npos) << bad.body;
}

TEST_F(IdlePrefill, B25_AnEditedHistoryWastesNoMoreThanWasPrepared) {
  ASSERT_NO_FATAL_FAILURE(serve_drifting(kQwen3));
  const Json list = three_steps(), first = chat(list);
  ASSERT_TRUE(eventually([&] { return turns("prepared") == 1; }));
  const double prepared = background("computed");
  Json edited = with(list, first, more_);
  edited[1]["content"] = "Where is it colder?";
  const Json second = chat(edited, {{"idle_prefill", false}});
  EXPECT_EQ(second["coppice"]["prepared"], 0) << second["coppice"];
  EXPECT_EQ(background("computed"), prepared) << "and that was all";
  EXPECT_LE(prepared, first["usage"]["prompt_tokens"].get<double>());
  EXPECT_EQ(content(second), content(first)) << "what is guessed never shows";
}

TEST_F(IdlePrefill, B25_ToolResultsComputeThemselves) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192", "--idle-prefill", "on"}));
  Json list = messages(
      {system("You are a careful agent. Use the facts and the tools."), user("What is the weather in Tavley?")});
  const Json body = {{"messages", list}, {"tools", weather_tools()}, {"temperature", 0}, {"max_tokens", 60}};
  const Json first = client().ask("/v1/chat/completions", body);
  const Json said = first["choices"][0]["message"];
  ASSERT_EQ(said["tool_calls"].size(), 1U) << first;
  ASSERT_TRUE(eventually([&] { return turns("prepared") == 1 || turns("held") == 1; }))
      << client().get("/metrics").body;
  const std::string result = "Tavley: rain, 12 degrees";
  list.push_back(said);
  list.push_back({{"role", "tool"}, {"tool_call_id", said["tool_calls"][0]["id"]}, {"content", result}});
  Json next = body;
  next["messages"] = list;
  const Json second = client().ask("/v1/chat/completions", next);
  EXPECT_LE(computed(second), own(result) + kAllowed) << second["coppice"];
  EXPECT_NE(content(second).find("Tavley: rain"), std::string::npos) << second;
}

// What a client expects to send is there when it sends it, and what it does not know yet costs only itself.
TEST_F(IdlePrefill, B25_WarmedMessagesAreComputedBeforeTheyAreSent) {
  ASSERT_NO_FATAL_FAILURE(serve_drifting(kQwen3));
  Json body = {{"messages", messages({system("You know the weather. " + filler(1, 30))})}, {"tools", weather_tools()}};
  const auto warmed = client().post("/v1/sessions/S/warm", body);
  EXPECT_EQ(warmed.status, 202) << warmed.body;
  const auto expected = warmed.json()["to_compute"].get<double>();
  EXPECT_GT(expected, 100);
  ASSERT_TRUE(eventually([&] { return background("computed") >= expected; })) << client().get("/metrics").body;

  body["messages"].push_back(user(more_));
  const Json explained = client().ask("/v1/explain", body);
  EXPECT_EQ(explained["source"], "prepared") << explained;
  EXPECT_EQ(explained["prepared"], explained["reused"]);
  const Json answer = chat(body["messages"]);
  EXPECT_LE(computed(answer), own(more_) + kAllowed) << answer["coppice"];
  EXPECT_EQ(answer["coppice"]["source"], "prepared");
}

}  // namespace
}  // namespace coppice::http_test
