// Spec A7, A8, A9, A10, A11 end to end: a prefix taken from a donor's slot.
#include <array>
#include <thread>

#include "support.h"

namespace coppice::http_test {
namespace {

struct Secret {
  const char* name;
  int code;
};
// Right on a cold cache behind filler(3, 58).
constexpr std::array<Secret, 8> kSecrets = {{{"Zorbin", 4821},
                                             {"Velmin", 5434},
                                             {"Tirgan", 6047},
                                             {"Tavley", 6660},
                                             {"Lodwen", 7273},
                                             {"Marpin", 7886},
                                             {"Kamtor", 9112},
                                             {"Monsta", 9725}}};

class Sharing : public ServerTest {
 protected:
  // Puts exactly these tokens into the slot.
  void fill(int slot, const Tokens& tokens) const {
    client().ask("/completion", {{"prompt", tokens}, {"n_predict", 0}, {"id_slot", slot}});
  }
  void empty(int slot) const {
    client().ask("/completion",
                 {{"prompt", Tokens{100}}, {"n_predict", 0}, {"id_slot", slot}, {"cache_prompt", false}});
  }
  Json ask(const Tokens& prompt, int slot, int donor, TokenPos shared, int n_predict = 8) const {
    Json body = greedy(prompt, n_predict);
    body["id_slot"] = slot;
    body["shared_pool_slot"] = donor;
    body["shared_prefix_n_tokens"] = shared;
    return client().ask("/completion", body);
  }
  Json cold(const Tokens& prompt, int slot, int n_predict = 8) const {
    Json body = greedy(prompt, n_predict);
    body["id_slot"] = slot;
    body["cache_prompt"] = false;
    return client().ask("/completion", body);
  }
  Tokens question(const Secret& secret, const std::string& base) const {
    const std::string name = secret.name;
    return tokens_of(messages({system("Answer briefly.\n" + base),
                               user("Remember: The code of " + name + " is " + std::to_string(secret.code) + "."),
                               assistant("OK, noted."), user("What is the code of " + name + "?")}));
  }
  static std::string right_answer(const Secret& secret) {
    return "The code of " + std::string(secret.name) + " is " + std::to_string(secret.code) + ".";
  }
};

TEST_F(Sharing, A7_A8_EightAgentsHoldTheirBaseOnceAndComputeItOnce) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "9", "-c", "4096"}));  // nine copies of the base could not fit
  std::array<Tokens, kSecrets.size()> prompts;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    prompts[i] = question(kSecrets[i], filler(3, 58));
  }
  // All that any two of them have in common, so that each agent's own tokens are its own.
  const TokenPos kBase = common_prefix(prompts[0], prompts[1]);
  ASSERT_GT(kBase, 1000);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) ASSERT_EQ(common_prefix(prompts[i], prompts[j]), kBase) << i << ' ' << j;
  }
  fill(0, first(prompts[0], kBase));
  EXPECT_EQ(metric("coppice_prompt_tokens_computed_total"), kBase);
  EXPECT_EQ(metric("coppice_kv_cells_used"), kBase);
  EXPECT_EQ(metric("coppice_kv_cells_total"), 4096);

  std::array<Json, kSecrets.size()> answers;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      threads.emplace_back([&, i] { answers[i] = ask(prompts[i], static_cast<int>(i) + 1, 0, kBase, 30); });
    }
  }
  TokenPos own_prompts = 0, own = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Json& report = answers[i].at("coppice");
    SCOPED_TRACE(report.dump());
    EXPECT_EQ(answers[i]["content"], right_answer(kSecrets[i]));
    EXPECT_EQ(report["source"], "donor");
    EXPECT_EQ(report["reused"], kBase);
    EXPECT_EQ(report["reused_by_source"]["donor"], kBase);
    EXPECT_EQ(report["computed"], length(prompts[i]) - kBase);
    EXPECT_EQ(report["reason"], nullptr);
    EXPECT_EQ(report["pauses"], 0);
    own_prompts += length(prompts[i]) - kBase;
    own += length(held_after(prompts[i], answers[i])) - kBase;
    EXPECT_EQ(slot(static_cast<int>(i) + 1)["n_exclusive"], length(held_after(prompts[i], answers[i])) - kBase);
  }
  EXPECT_EQ(metric("coppice_prompt_tokens_computed_total"), kBase + own_prompts);
  EXPECT_EQ(metric("coppice_prompt_tokens_reused_total{source=\"donor\"}"), 8 * kBase);
  EXPECT_EQ(metric("coppice_kv_cells_used"), kBase + own);
  EXPECT_EQ(metric("coppice_sequences_evicted_total"), 0);
  EXPECT_EQ(metric("coppice_requests_paused_total"), 0);
  EXPECT_EQ(slot(0)["n_held"], kBase) << "the donor keeps what it lends";
}

TEST_F(Sharing, A7_ThePrefixEndsWithThePromptAndOneTokenIsEvaluated) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "3"}));
  const Tokens base = random_tokens(1, 60);
  fill(0, base);
  const Json whole = ask(base, 1, 0, 1'000'000);
  EXPECT_EQ(whole["coppice"]["reused"], 59);
  EXPECT_EQ(whole["coppice"]["computed"], 1);
  EXPECT_EQ(whole["tokens"], cold(base, 2)["tokens"]);
  const Json own = ask(joined(base, {101, 102}), 0, 0, 60);
  EXPECT_EQ(own["coppice"]["source"], "slot") << "a slot is not its own donor";
  EXPECT_EQ(own["coppice"]["reused"], 60);
}

TEST_F(Sharing, A11_OneFieldAloneNamesNoDonor) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2"}));
  for (const auto& [donor, shared] : {std::pair{-1, 60}, std::pair{0, 0}}) {
    const Json answer = ask(random_tokens(static_cast<std::uint64_t>(10 + shared), 60), 1, donor, shared);
    EXPECT_NE(answer["coppice"]["reason"], "not_resident") << "as it would be with a donor named that is empty";
  }
}

struct DonorCase {
  const char* name;
  TokenPos donor_length;  // 0: the donor holds nothing
  TokenPos differs_at;    // the donor's token there is another; -1: none
  TokenPos reused;
  const char* reason;  // null: none
};
void PrintTo(const DonorCase& c, std::ostream* out) { *out << c.name; }
constexpr TokenPos kPromised = 200;

class Donors : public Sharing, public ::testing::WithParamInterface<DonorCase> {};

TEST_P(Donors, A9_A10_TheAnswerIsRightAndTheReasonIsStated) {
  const DonorCase& c = GetParam();
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "3"}));
  const Tokens prompt = question(kSecrets[0], filler(3, 20));
  Tokens donor = first(prompt, c.donor_length);
  if (c.differs_at >= 0) donor[static_cast<std::size_t>(c.differs_at)] ^= 1;
  if (!donor.empty()) fill(0, donor);

  const Json answer = ask(prompt, 1, 0, kPromised, 30);
  const Json& report = answer.at("coppice");
  SCOPED_TRACE(report.dump());
  EXPECT_EQ(answer["content"], right_answer(kSecrets[0]));
  EXPECT_EQ(answer["tokens"], cold(prompt, 2, 30)["tokens"]);
  EXPECT_EQ(report["reused"], c.reused);
  EXPECT_EQ(report["computed"], length(prompt) - c.reused);
  EXPECT_EQ(report["source"], c.reused > 0 ? "donor" : "none");
  EXPECT_EQ(report["reason"], c.reason == nullptr ? Json(nullptr) : Json(c.reason));
  const bool diverged = c.differs_at >= 0;
  EXPECT_EQ(report["diverged_at"], diverged ? Json(c.differs_at) : Json(nullptr));
  EXPECT_EQ(report["diverged_text"].is_string(), diverged);
  EXPECT_EQ(slot(0)["n_held"], c.donor_length) << "the donor keeps what it holds";
}

INSTANTIATE_TEST_SUITE_P(
    All, Donors,
    ::testing::Values(DonorCase{"whole", kPromised, -1, kPromised, nullptr},
                      DonorCase{"gone", 0, -1, 0, "not_resident"}, DonorCase{"short", 120, -1, 120, "not_resident"},
                      DonorCase{"differs_at_0", kPromised, 0, 0, "diverged"},
                      DonorCase{"differs_at_1", kPromised, 1, 1, "diverged"},
                      DonorCase{"differs_at_the_end", kPromised, kPromised - 1, kPromised - 1, "diverged"}),
    [](const auto& c) { return std::string(c.param.name); });

TEST_F(Sharing, A9_ADonorThatWasEvictedIsSaidToBeGone) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "3", "-c", "512", "--cache-ram", "0"}));
  const Tokens base = random_tokens(1, 100);
  fill(0, base);
  fill(1, random_tokens(2, 500));  // takes the donor's cells
  EXPECT_EQ(slot(0)["n_held"], 0);
  const Json answer = ask(joined(base, random_tokens(3, 10)), 2, 0, 100);
  EXPECT_EQ(answer["coppice"]["reason"], "not_resident");
  EXPECT_EQ(answer["coppice"]["computed"], 110);
}

}  // namespace
}  // namespace coppice::http_test
