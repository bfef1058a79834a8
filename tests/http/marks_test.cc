// Cache marks with a time, end to end: what they pin outlives what evicts everything else, until the time is over.
#include "support.h"

namespace coppice::http_test {
namespace {

class Marks : public ServerTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "2048", "--cache-ram", "0"})); }

  // An Anthropic request whose long system prompt has this mark.
  Json ask(const Json& mark, const std::string& question) const {
    Json block = {{"type", "text"}, {"text", "Answer briefly.\n" + filler(3, 30)}};
    if (!mark.is_null()) block["cache_control"] = mark;
    return client().ask("/v1/messages", {{"model", "m"},
                                         {"max_tokens", 4},
                                         {"system", Json::array({block})},
                                         {"messages", Json::array({user(question)})}});
  }
  void fill_cells(std::size_t count) const {
    for (std::uint64_t i = 0; i < 2; ++i) client().ask("/completion", greedy(random_tokens(10 + i, count), 1));
  }
};

TEST_F(Marks, KeepTheirPrefixWhileOthersComeAndGo) {
  const Json first = ask({{"type", "ephemeral"}, {"ttl", "1h"}}, "Who are you?");
  const auto pinned = first["coppice"]["pinned"].get<TokenPos>();
  ASSERT_GT(pinned, 400) << first["coppice"];
  EXPECT_EQ(first["coppice"]["pins_refused"], 0);
  EXPECT_EQ(metric("coppice_prefix_pins"), 1);
  EXPECT_EQ(metric("coppice_kv_cells_pinned"), pinned);
  fill_cells(1300);
  EXPECT_EQ(ask({{"type", "ephemeral"}, {"ttl", "1h"}}, "What is the harbor code?")["usage"]["cache_read_input_tokens"],
            pinned);
  EXPECT_EQ(metric("coppice_prefix_pins"), 1) << "the same one, for longer";
}

TEST_F(Marks, WithoutATimeKeepNothingMore) {
  EXPECT_EQ(ask({{"type", "ephemeral"}}, "Who are you?")["coppice"]["pinned"], 0);
  EXPECT_EQ(metric("coppice_prefix_pins"), 0);
  fill_cells(2000);
  EXPECT_LT(ask({{"type", "ephemeral"}}, "What is the harbor code?")["usage"]["cache_read_input_tokens"], 16);
}

TEST_F(Marks, AreOverWhenTheirTimeIs) {
  ASSERT_GT(ask({{"type", "ephemeral"}, {"ttl", "1s"}}, "Who are you?")["coppice"]["pinned"], 400);
  EXPECT_TRUE(eventually([&] { return metric("coppice_prefix_pins") == 0; })) << "no request has to come";
  EXPECT_EQ(metric("coppice_kv_cells_pinned"), 0);
  fill_cells(2000);
  EXPECT_LT(ask(nullptr, "What is the harbor code?")["usage"]["cache_read_input_tokens"], 16);
}

TEST_F(Marks, OfAConversationMoveOnWithIt) {
  Json list = messages({system("Answer briefly.\n" + filler(3, 10)), user("The code of Zorbin is 4821.")});
  TokenPos pinned = 0;
  for (int turn = 0; turn < 4; ++turn) {
    const Json answer = client().ask(
        "/v1/chat/completions",
        {{"messages", list}, {"temperature", 0}, {"max_tokens", 30}, {"prompt_cache_options", {{"ttl", "30m"}}}});
    EXPECT_EQ(answer["coppice"]["pinned"], answer["usage"]["prompt_tokens"]) << turn;
    EXPECT_GT(answer["coppice"]["pinned"], pinned);
    pinned = answer["coppice"]["pinned"].get<TokenPos>();
    list.push_back(assistant(content(answer)));
    list.push_back(user("What is the code of Zorbin?"));
  }
  EXPECT_EQ(metric("coppice_prefix_pins"), 1);
}

TEST_F(Marks, NeverMakeARequestFail) {
  ASSERT_GT(ask({{"type", "ephemeral"}, {"ttl", "1h"}}, "Who are you?")["coppice"]["pinned"], 400);
  EXPECT_EQ(client().post("/completion", greedy(random_tokens(1, 2000), 1)).status, 200);
  EXPECT_EQ(metric("coppice_prefix_pins"), 0);
}

}  // namespace
}  // namespace coppice::http_test
