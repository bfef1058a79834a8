// The shared read-only prefix (spec A7-A11) through the whole scheduler.
#include <gtest/gtest.h>

#include "sched/test_world.h"

namespace coppice::sched {
namespace {

constexpr TokenPos kBase = 1000;

Placement from_donor(int own, int donor, TokenPos prefix) {
  return {.id_slot = SlotId{own}, .shared_pool_slot = SlotId{donor}, .shared_prefix_n_tokens = prefix};
}

class Pool : public testing::Test {
 protected:
  Pool() : world({.n_cells = 4096, .n_seqs = 12, .n_batch = 256}, {.n_slots = 9}) {
    world.ask(base, {.id_slot = SlotId{0}, .session = "base"}, 0);  // fills the donor
  }
  void lose_base() { ASSERT_TRUE(world.scheduler.forget_session(NamespaceId{}, "base").has_value()); }
  Tokens base = tokens_of(1, kBase);
  World world;
};

TEST_F(Pool, A8_EightAgentsHoldTheBaseOnceAndComputeItOnce) {
  std::vector<std::shared_ptr<Outcome>> agents;
  std::vector<Tokens> prompts;
  for (int agent = 1; agent <= 8; ++agent) {
    prompts.push_back(base + tokens_of(agent + 1, 10 * agent));
    agents.push_back(world.submit(prompts.back(), from_donor(agent, 0, kBase)));
  }
  world.run();
  TokenPos own = 0;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    EXPECT_EQ(agents[i]->text, world.right_text(prompts[i], 4));
    EXPECT_EQ(agents[i]->report().reused_donor, kBase);
    EXPECT_EQ(agents[i]->report().computed, static_cast<TokenPos>(prompts[i].size()) - kBase);
    own += static_cast<TokenPos>(prompts[i].size()) - kBase + 3;  // the last generated token is not evaluated
  }
  EXPECT_EQ(world.runner.used(), kBase + own);
  EXPECT_EQ(world.runner.tokens_evaluated(), static_cast<std::uint64_t>(kBase + own));
}

TEST_F(Pool, A8_AnAgentsNextTurnStaysInItsCells) {
  const Tokens prompt = base + tokens_of(2, 10);
  world.ask(prompt, {.id_slot = SlotId{1}});
  EXPECT_EQ(world.runner.used(), kBase + 13);
  const Tokens next = world.next_turn(prompt, 4, tokens_of(3, 5));
  const Report report = world.ask(next, from_donor(1, 0, kBase));
  EXPECT_EQ(report.computed, 6);  // nothing known is computed for it
  EXPECT_EQ(world.runner.used(), kBase + 10 + 4 + 5 + 3);
}

TEST_F(Pool, A7_WholePromptInTheDonorStillEvaluatesOneToken) {
  const Report report = world.ask(base, from_donor(1, 0, kBase));
  EXPECT_EQ(report.reused_donor, kBase - 1);
  EXPECT_EQ(report.computed, 1);
}

TEST_F(Pool, A7_PrefixLongerThanThePromptMeansThePrompt) {
  const Tokens shorter(base.begin(), base.begin() + 100);
  const Report report = world.ask(shorter, from_donor(1, 0, kBase));
  EXPECT_EQ(report.reused_donor, 99);
  EXPECT_EQ(report.reason, kv::MissReason::none);
}

TEST_F(Pool, A7_DonorThatIsTheOwnSlotIsOrdinaryReuse) {
  const Report report = world.ask(base + tokens_of(2, 5), from_donor(0, 0, kBase));
  EXPECT_EQ(report.reused_slot, kBase);
  EXPECT_EQ(report.source, kv::Source::slot);
}

TEST_F(Pool, A9_DonorGone) {
  lose_base();
  const Report report = world.ask(base + tokens_of(2, 5), from_donor(1, 0, kBase));
  EXPECT_EQ(report.reused(), 0);
  EXPECT_EQ(report.reason, kv::MissReason::not_resident);
}

TEST_F(Pool, A9_DonorTooShort) {
  lose_base();
  world.ask(Tokens(base.begin(), base.begin() + 400), {.id_slot = SlotId{0}}, 0);
  const Report report = world.ask(base + tokens_of(2, 5), from_donor(1, 0, kBase));
  EXPECT_EQ(report.reused_donor, 400);  // what is known is not computed again
  EXPECT_EQ(report.computed, kBase + 5 - 400);
  EXPECT_EQ(report.reason, kv::MissReason::not_resident);
}

TEST_F(Pool, A10_PromiseThatIsWrongAtAToken) {
  for (const TokenPos at : {0, 1, kBase - 1}) {
    Tokens prompt = base + tokens_of(2, 5);
    prompt[static_cast<std::size_t>(at)] = 999;
    const Report report = world.ask(prompt, from_donor(1, 0, kBase));  // ask() checks the answer
    EXPECT_EQ(report.reason, kv::MissReason::diverged);
    EXPECT_EQ(report.diverged_at, at);
    EXPECT_EQ(report.reused(), at);
    EXPECT_NE(report.diverged_text.find("<999>"), std::string::npos);
  }
}

TEST_F(Pool, A11_OneFieldAloneNamesNoDonor) {
  lose_base();
  const Report report = world.ask(base + tokens_of(2, 5), {.id_slot = SlotId{1}, .shared_pool_slot = SlotId{0}});
  EXPECT_EQ(report.reason, kv::MissReason::fresh);  // with a donor named it would be not_resident
  const Report other = world.ask(tokens_of(3, 50), {.id_slot = SlotId{2}, .shared_prefix_n_tokens = kBase});
  EXPECT_EQ(other.reason, kv::MissReason::fresh);
}

TEST_F(Pool, B15_TheBaseIsFoundWithoutBeingNamed) {
  const Report report = world.ask(base + tokens_of(2, 5), {.id_slot = SlotId{1}});
  EXPECT_EQ(report.reused_donor, kBase);
  EXPECT_EQ(report.computed, 5);
}

TEST_F(Pool, DonorMayDecodeOnWhileOthersShare) {
  const auto donor = world.submit(base + tokens_of(5, 5), {.id_slot = SlotId{0}}, 20);
  world.scheduler.step();
  const auto agent = world.submit(base + tokens_of(6, 5), from_donor(1, 0, kBase));
  world.run();
  EXPECT_EQ(agent->report().reused_donor, kBase);
  EXPECT_EQ(agent->text, world.right_text(base + tokens_of(6, 5), 4));
  EXPECT_EQ(donor->text, world.right_text(base + tokens_of(5, 5), 20));
}

}  // namespace
}  // namespace coppice::sched
