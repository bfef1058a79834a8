// Every model family over HTTP: reuse does not change what is computed, and where a family cannot go back it says so.
#include "families.h"

namespace coppice::http_test {
namespace {

class Families : public FamilyTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(serve_family({"-np", "4"})); }
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
                         family_name);

}  // namespace
}  // namespace coppice::http_test
