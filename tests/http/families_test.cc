// Every model family over HTTP: reuse does not change what is computed, and where a family cannot go back it says so.
// The models have random weights, so a token may be a near tie; logprobs are compared, and a changed token of the
// reused prefix shows how far a mistake would move them.
#include <cmath>
#include <map>

#include "support.h"

namespace coppice::http_test {
namespace {

struct Family {
  const char* name;
  bool can_rewind;
};

void PrintTo(const Family& f, std::ostream* out) { *out << f.name; }

constexpr double kRounding = 0.05;  // of a logprob, with keys and values in 16 bits; measured: up to 0.013

class Families : public ServerTest, public ::testing::WithParamInterface<Family> {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(serve({"-np", "4", "-m", random_model(GetParam().name)})); }

  Json ask(const Tokens& prompt, Json more) const {
    more.update(greedy(prompt, 6));
    more["n_probs"] = 10;
    more["ignore_eos"] = true;
    return client().ask("/completion", more);
  }
  Json cold(const Tokens& prompt) const { return ask(prompt, {{"cache_prompt", false}, {"id_slot", 0}}); }

  // The largest difference of the logprobs that both give for the first token. Infinite if they have few in common.
  static double difference(const Json& a, const Json& b) {
    const auto logprobs = [](const Json& answer) {
      std::map<Token, double> out;
      for (const Json& entry : answer.at("completion_probabilities").at(0).at("top_logprobs")) {
        out[entry.at("id")] = entry.at("logprob");
      }
      return out;
    };
    const auto of_a = logprobs(a), of_b = logprobs(b);
    double most = 0;
    int both = 0;
    for (const auto& [token, logprob] : of_a) {
      if (!of_b.contains(token)) continue;
      ++both;
      most = std::max(most, std::abs(logprob - of_b.at(token)));
    }
    return both >= 3 ? most : HUGE_VAL;
  }

  void expect_as_cold(const Json& answer, const Tokens& prompt) const {
    const Json reference = cold(prompt);
    Tokens wrong = prompt;
    wrong[wrong.size() - 60] ^= 1;  // within the reused part, and within the sliding window
    const double reused = difference(answer, reference), control = difference(cold(wrong), reference);
    EXPECT_LT(reused, kRounding);
    EXPECT_LT(3 * reused, control);
    EXPECT_EQ(answer["tokens"][0], reference["tokens"][0]);
  }
};

TEST_P(Families, TheNextTurnReusesAllAndAnswersAsACold) {
  const Tokens turn = random_tokens(1, 300);
  const Json before = ask(turn, {{"session_id", "S"}});
  const Tokens held = held_after(turn, before);
  const Tokens next = joined(held, random_tokens(2, 20));
  const Json answer = ask(next, {{"session_id", "S"}});
  EXPECT_EQ(answer["coppice"]["reused"], length(held));
  EXPECT_EQ(answer["coppice"]["computed"], 20);
  EXPECT_EQ(answer["coppice"]["reason"], nullptr);
  expect_as_cold(answer, next);
}

TEST_P(Families, AnEditedPromptGoesBackOrSaysThatItCannot) {
  const Tokens turn = random_tokens(1, 300);
  ask(turn, {{"session_id", "S"}});
  const Tokens edited = joined(first(turn, 200), random_tokens(3, 30));
  const Json answer = ask(edited, {{"session_id", "S"}});
  const bool can = GetParam().can_rewind;
  EXPECT_EQ(answer["coppice"]["reused"], can ? 200 : 0);
  EXPECT_EQ(answer["coppice"]["computed"], can ? 30 : 230);
  EXPECT_EQ(answer["coppice"]["reason"], can ? "diverged" : "not_rewindable");
  EXPECT_EQ(answer["coppice"]["diverged_at"], can ? Json(200) : Json(nullptr));
  expect_as_cold(answer, edited);
}

TEST_P(Families, ADonorsPrefixIsSharedOrSaidToBeNotRewindable) {
  const Tokens donor = random_tokens(1, 300);
  client().ask("/completion", {{"prompt", donor}, {"n_predict", 0}, {"id_slot", 1}});
  const Json sharing = {{"id_slot", 2}, {"shared_pool_slot", 1}, {"shared_prefix_n_tokens", 250}};
  const Tokens prompt = joined(first(donor, 250), random_tokens(4, 30));
  const Json answer = ask(prompt, sharing);
  const bool can = GetParam().can_rewind;
  EXPECT_EQ(answer["coppice"]["reused"], can ? 250 : 0);
  EXPECT_EQ(answer["coppice"]["source"], can ? "donor" : "none");
  EXPECT_EQ(answer["coppice"]["reason"], can ? Json(nullptr) : Json("not_rewindable"));
  expect_as_cold(answer, prompt);
  EXPECT_EQ(slot(1)["n_held"], 300) << "the donor keeps what it lends";
}

TEST_P(Families, AWholeDonorIsSharedByEveryFamily) {
  const Tokens donor = random_tokens(1, 250);
  client().ask("/completion", {{"prompt", donor}, {"n_predict", 0}, {"id_slot", 1}});
  const Tokens prompt = joined(donor, random_tokens(4, 30));
  const Json answer = ask(prompt, {{"id_slot", 2}, {"shared_pool_slot", 1}, {"shared_prefix_n_tokens", 250}});
  EXPECT_EQ(answer["coppice"]["reused"], 250);
  EXPECT_EQ(answer["coppice"]["computed"], 30);
  expect_as_cold(answer, prompt);
}

INSTANTIATE_TEST_SUITE_P(All, Families,
                         ::testing::Values(Family{"qwen3", true}, Family{"gpt-oss", true}, Family{"deepseek2", true},
                                           Family{"qwen35", false}),
                         [](const auto& f) {
                           std::string name = f.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace coppice::http_test
