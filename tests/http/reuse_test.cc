// Spec B15-B18 end to end: what is known anywhere is not computed again, whoever asks, in whatever order.
//
// R is what a request computes: prompt tokens - cached tokens. The bound is always what is new in it, and kSlack.
#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include "support.h"

namespace coppice::http_test {
namespace {

constexpr TokenPos kSlack = 80;

TokenPos computed(const Json& answer) { return answer["coppice"]["computed"].get<TokenPos>(); }

// A conversation that grows by the answers it gets.
struct Talk {
  Tokens prompt;
  std::string session;  // "" : none

  void add(const Json& answer, const Tokens& more) { prompt = joined(held_after(prompt, answer), more); }
};

class Reuse : public ServerTest {
 protected:
  Json body(const Tokens& prompt, int n_predict = 8) const {
    Json b = greedy(prompt, n_predict);
    b["ignore_eos"] = true;
    b["n_probs"] = 16;
    return b;
  }
  Json ask(const Tokens& prompt, int n_predict = 8) const {
    return client().ask("/completion", body(prompt, n_predict));
  }
  Json ask(const Talk& talk) const {
    Json b = body(talk.prompt);
    if (!talk.session.empty()) b["session_id"] = talk.session;
    return client().ask("/completion", b);
  }
  // What the prompt gives without any reuse.
  Json cold(const Tokens& prompt, int n_predict = 8) const {
    Json b = body(prompt, n_predict);
    b["cache_prompt"] = false;
    return client().ask("/completion", b);
  }
};

TEST_F(Reuse, B15_FiveTurnsThatAppend) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
  Talk talk{random_tokens(1, 1000)};
  talk.add(ask(talk), random_tokens(2, 50));
  for (std::uint64_t turn = 0; turn < 5; ++turn) {
    const Json answer = ask(talk);
    EXPECT_LE(computed(answer), 50 + kSlack) << turn;
    EXPECT_TRUE(agree(answer, cold(talk.prompt))) << turn;
    talk.add(answer, random_tokens(3 + turn, 50));
  }
}

// llama-server v0.4.0 recomputes 570-750 tokens of each of these turns.
TEST_F(Reuse, B15_TwoAndThreeConversationsOverOneSystemPromptInterleaved) {
  for (const bool with_sessions : {true, false}) {
    for (const std::size_t n : {2U, 3U}) {
      SCOPED_TRACE(std::to_string(n) + (with_sessions ? " sessions" : " without sessions"));
      ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "16384"}));
      const Tokens base = random_tokens(1, 1500);
      std::vector<Talk> talks;
      for (std::size_t i = 0; i < n; ++i) {
        talks.push_back({joined(base, random_tokens(10 + i, 400)), with_sessions ? "s" + std::to_string(i) : ""});
      }
      for (std::uint64_t turn = 0; turn < 4; ++turn) {
        for (std::size_t i = 0; i < n; ++i) {
          const Json answer = ask(talks[i]);
          const TokenPos is_new = turn > 0 ? 40 : i > 0 ? 400 : 1900;
          EXPECT_LE(computed(answer), is_new + kSlack) << "turn " << turn << " of " << i;
          talks[i].add(answer, random_tokens(100 + 10 * turn + i, 40));
        }
      }
      stop();
    }
  }
}

TEST_F(Reuse, B15_MoreAgentsThanSlots) {
  constexpr std::size_t kSlots = 3, kAgents = kSlots + 2;
  ASSERT_NO_FATAL_FAILURE(serve({"-np", std::to_string(kSlots), "-c", "16384"}));
  std::vector<Talk> agents;
  for (std::size_t i = 0; i < kAgents; ++i)
    agents.push_back({random_tokens(10 + i, 1000), "agent" + std::to_string(i)});
  for (std::uint64_t round = 0; round < 3; ++round) {
    std::vector<Json> answers(kAgents);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < kAgents; ++i) threads.emplace_back([&, i] { answers[i] = ask(agents[i]); });
    }
    for (std::size_t i = 0; i < kAgents; ++i) {
      if (round > 0) {
        EXPECT_LE(computed(answers[i]), 30 + kSlack) << "round " << round << " of " << i;
      }
      agents[i].add(answers[i], random_tokens(100 + 10 * round + i, 30));
    }
  }
}

TEST_F(Reuse, B15_UnrelatedCallsBetweenTwoTurns) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
  Talk talk{random_tokens(1, 2000)};
  talk.add(ask(talk), random_tokens(2, 30));
  for (std::uint64_t i = 0; i < 6; ++i) ask(random_tokens(100 + i, 120));
  EXPECT_LE(computed(ask(talk)), 30 + kSlack);
}

TEST_F(Reuse, B15_SharesWithAStreamThatGoesOn) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "16384"}));
  const Tokens base = random_tokens(1, 1500);
  Stream stream = client().stream("/completion", body(joined(base, random_tokens(2, 100)), 12000));
  ASSERT_TRUE(stream.next_json().is_object());
  const Tokens own = joined(base, random_tokens(3, 100));
  const Json answer = ask(own);
  EXPECT_LE(computed(answer), 100 + kSlack);
  EXPECT_EQ(metric("coppice_slots_busy"), 1) << "the stream goes on";
  EXPECT_TRUE(agree(answer, cold(own)));
  EXPECT_FALSE(agree(answer, cold(random_tokens(4, 1600)))) << "else this check sees nothing";
  stream.close();
}

// llama-server v0.4.0 computes all of it four times.
TEST_F(Reuse, B16_FourColdRequestsAtOnceComputeTheirBaseOnce) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "4", "-c", "16384"}));
  const Tokens base = random_tokens(1, 1500);
  std::vector<Tokens> prompts;
  for (std::uint64_t i = 0; i < 4; ++i) prompts.push_back(joined(base, random_tokens(10 + i, 100)));
  std::vector<Json> answers(prompts.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < prompts.size(); ++i) threads.emplace_back([&, i] { answers[i] = ask(prompts[i]); });
  }
  TokenPos sum = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    sum += computed(answers[i]);
    EXPECT_TRUE(agree(answers[i], cold(prompts[i]))) << i;
  }
  EXPECT_LE(sum, 1500 + 4 * (100 + kSlack));
  EXPECT_EQ(metric("coppice_requests_coalesced_total"), 3);
}

TEST_F(Reuse, B15_BranchesOfOnePrefix) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "1", "-c", "8192"}));
  const Tokens p = random_tokens(1, 1000), px = joined(p, random_tokens(2, 200)), py = joined(p, random_tokens(3, 200));
  ask(px);
  EXPECT_LE(computed(ask(py)), 200 + kSlack);
  const Tokens pxz = joined(px, random_tokens(4, 100));
  const Json answer = ask(pxz);
  EXPECT_LE(computed(answer), 100 + kSlack);
  EXPECT_TRUE(agree(answer, cold(pxz)));
}

TEST_F(Reuse, B15_TheSameRequestTwice) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
  const Tokens prompt = random_tokens(1, 1000);
  const Json first_answer = ask(prompt), second = ask(prompt);
  EXPECT_EQ(computed(second), 1);
  EXPECT_TRUE(agree(first_answer, second));
}

TEST_F(Reuse, B17_DisconnectInThePrefillAndAskAgain) {
  // A model that takes its time, so that the client goes in the middle.
  ASSERT_NO_FATAL_FAILURE(serve({"-m", random_model("qwen3"), "-np", "2", "-c", "8192", "--prefill-chunk", "64"}));
  const Tokens prompt = random_tokens(1, 6000);
  {
    Stream stream = client().stream("/completion", body(prompt));
    ASSERT_TRUE(eventually([&] { return metric("coppice_prompt_tokens_computed_total") >= 3000; }));
  }
  ASSERT_TRUE(eventually([&] { return metric("coppice_slots_busy") == 0; }));
  EXPECT_EQ(metric("coppice_requests_cancelled_total"), 1);
  const Json answer = ask(prompt);
  EXPECT_LE(computed(answer), 6000 * 60 / 100);
}

TEST_F(Reuse, B18_FourAnswersBesideAWarmConversation) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "4", "-c", "16384"}));
  Talk talk{random_tokens(1, 1500), "talk"};
  talk.add(ask(talk), random_tokens(2, 30));
  Json four = {{"prompt", random_tokens(3, 500)}, {"max_tokens", 8}, {"n", 4}, {"ignore_eos", true}};
  const TokenPos before = static_cast<TokenPos>(metric("coppice_prompt_tokens_computed_total"));
  const Json answers = client().ask("/v1/completions", four);
  EXPECT_EQ(answers["choices"].size(), 4U);
  EXPECT_EQ(metric("coppice_prompt_tokens_computed_total") - before, 500 + 3);
  EXPECT_LE(computed(ask(talk)), 30 + kSlack);
}

TEST_F(Reuse, B19_ThreeHundredOneShotCallsBesideAWarmConversation) {
  for (const char* session : {"talk", ""}) {
    ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "8192"}));
    Talk talk{random_tokens(1, 2000), session};
    talk.add(ask(talk), random_tokens(2, 30));
    for (std::uint64_t i = 0; i < 300; ++i) ask(random_tokens(1000 + i, 120), 2);
    EXPECT_GT(metric("coppice_sequences_evicted_total") + metric("coppice_sequences_spilled_total"), 0);
    EXPECT_LE(computed(ask(talk)), 30 + kSlack) << '"' << session << '"';
    stop();
  }
}

// llama-server v0.4.0 fails all four with 500.
TEST_F(Reuse, B18_FourStreamsThatTogetherNeedTwiceTheContext) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "4", "-c", "2048"}));
  std::vector<Tokens> prompts;
  for (std::uint64_t i = 0; i < 4; ++i) prompts.push_back(random_tokens(10 + i, 500));
  std::vector<Events> results(prompts.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      threads.emplace_back([&, i] { results[i] = collect(client().stream("/completion", body(prompts[i], 500))); });
    }
  }
  TokenPos pauses = 0;
  for (const Events& events : results) {
    EXPECT_EQ(events.status, 200);
    EXPECT_TRUE(events.complete);
    ASSERT_FALSE(events.list.empty());
    EXPECT_EQ(events.last()["timings"]["predicted_n"], 500);
    pauses += events.last()["coppice"]["pauses"].get<TokenPos>();
  }
  EXPECT_GT(pauses, 0);
  EXPECT_EQ(metric("coppice_requests_failed_total"), 0);
  const Response never = client().post("/completion", body(random_tokens(1, 3000)));
  EXPECT_EQ(never.status, 400);
  EXPECT_EQ(never.json()["error"]["code"], "context_length_exceeded");
}

// The built-in model as a semantic oracle: what one agent was told in confidence never shows up in another's answer,
// though both started from the same parked prefix.
TEST_F(Reuse, C_SecretsStayInTheirBranch) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "1", "-c", "8192"}));
  const Json intro = system("Answer briefly.\n" + filler(3, 20));
  const auto told = [&](const std::string& fact, const std::string& question) {
    Json list = messages({intro, user("Remember: " + fact), assistant("OK, noted."), user(question)});
    return content(client().ask("/v1/chat/completions", {{"messages", list}, {"temperature", 0}, {"max_tokens", 30}}));
  };
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(told("The code of Zorbin is 4821.", "What is the code of Zorbin?"), "The code of Zorbin is 4821.");
    EXPECT_EQ(told("The code of Velmin is 5434.", "What is the code of Velmin?"), "The code of Velmin is 5434.");
    const std::string other = told("The code of Velmin is 5434.", "What is the code of Zorbin?");
    EXPECT_EQ(other.find("4821"), std::string::npos) << other;
  }
}

}  // namespace
}  // namespace coppice::http_test
