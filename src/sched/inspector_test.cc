// What people are told of sessions, the tree, and of a request before it is made (spec A14).
#include <gtest/gtest.h>

#include "sched/test_world.h"

namespace coppice::sched {
namespace {

class Inspect : public testing::Test {
 protected:
  Inspect() : world({.n_cells = 4096, .n_seqs = 8, .n_batch = 64}, {.n_slots = 2}) {}
  World world;
};

TEST_F(Inspect, ExplainSaysWhatARequestThenDoes) {
  const Tokens prompt = tokens_of(1, 100);
  world.ask(prompt, {.session = "a"});
  Tokens next = world.next_turn(prompt, 4, tokens_of(2, 20));
  next[60] = 999;
  const std::uint64_t before = world.runner.tokens_evaluated();
  const Explanation e = world.scheduler.explain(next, {.session = "a"});
  EXPECT_EQ(world.runner.tokens_evaluated(), before);  // it runs nothing
  EXPECT_EQ(world.scheduler.session(NamespaceId{}, "a")->requests, 1);
  const Report report = world.ask(next, {.session = "a"});
  EXPECT_EQ(e.slot, report.slot);
  EXPECT_EQ(e.reused, report.reused());
  EXPECT_EQ(e.computed, report.computed);
  EXPECT_EQ(e.source, report.source);
  EXPECT_EQ(e.reason, report.reason);
  EXPECT_EQ(e.diverged_at, report.diverged_at);
  EXPECT_EQ(e.diverged_text, report.diverged_text);
  EXPECT_EQ(e.cells_needed, e.computed + 1);
}

TEST_F(Inspect, ExplainShowsBothSidesOfTheDivergence) {
  const Tokens prompt = tokens_of(1, 100);
  world.ask(prompt, {.session = "a"});
  Tokens other = prompt;
  other[60] = 999;
  const Explanation e = world.scheduler.explain(other, {});
  ASSERT_TRUE(e.nearest);
  EXPECT_EQ(e.nearest->session, "a");
  EXPECT_EQ(e.nearest->common, 60);
  EXPECT_EQ(e.nearest->length, 103);
  EXPECT_EQ(e.nearest->before.back(), prompt[59]);
  EXPECT_EQ(e.nearest->prompt_after.front(), 999);
  EXPECT_EQ(e.nearest->held_after.front(), prompt[60]);
  EXPECT_EQ(e.nearest->prompt_text.substr(0, 5), "<999>");
  EXPECT_EQ(e.nearest->held_text, world.tokenizer.text(e.nearest->held_after, true));
  EXPECT_FALSE(world.scheduler.explain(tokens_of(5, 10), {}).nearest);
}

TEST_F(Inspect, ExplainSaysForWhatItWouldWait) {
  world.submit(tokens_of(1, 1000), {.id_slot = SlotId{0}});
  world.scheduler.step();
  const Explanation prefix = world.scheduler.explain(tokens_of(1, 500), {});
  EXPECT_EQ(prefix.waits_for, RequestId{1});
  EXPECT_EQ(prefix.waits_until, 499);
  const Explanation slot = world.scheduler.explain(tokens_of(2, 5), {.id_slot = SlotId{0}});
  EXPECT_EQ(slot.rule, kv::SlotRule::wait);
  EXPECT_FALSE(slot.slot);
  EXPECT_TRUE(world.scheduler.explain(tokens_of(2, 4000), {}).waits_for_cells);
  EXPECT_FALSE(world.scheduler.explain(tokens_of(2, 3000), {}).waits_for_cells);
  world.run();
}

TEST_F(Inspect, SessionsSayWhatIsHeldAndWhere) {
  world.ask(tokens_of(1, 100), {.id_slot = SlotId{1}, .session = "a", .parent_session = "root"});
  world.clock.advance(std::chrono::seconds(3));
  world.ask(tokens_of(2, 50), {.id_slot = SlotId{1}, .session = "b"});
  const auto all = world.scheduler.sessions(NamespaceId{}, 10);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "b");
  EXPECT_EQ(all[0].place->slot, SlotId{1});
  EXPECT_EQ(all[1].name, "a");
  EXPECT_EQ(all[1].parent, "root");
  EXPECT_EQ(all[1].held, 100);
  EXPECT_EQ(all[1].prompt_tokens, 100);
  EXPECT_EQ(all[1].idle, std::chrono::seconds(3));
  EXPECT_FALSE(all[1].place->slot);  // parked
  EXPECT_EQ(world.scheduler.sessions(NamespaceId{}, 1).size(), 1U);
  EXPECT_TRUE(world.scheduler.sessions(NamespaceId{1}, 10).empty());
}

TEST_F(Inspect, ForgettingASessionFreesWhatOnlyItHolds) {
  const Tokens base = tokens_of(1, 100);
  world.ask(base + tokens_of(2, 50), {.session = "a"}, 0);
  world.ask(base + tokens_of(3, 70), {.session = "b"}, 0);
  EXPECT_EQ(world.scheduler.forget_session(NamespaceId{}, "a").value(), 50);
  EXPECT_EQ(world.scheduler.session(NamespaceId{}, "a").error().kind, ErrorKind::not_found);
  EXPECT_EQ(world.scheduler.forget_session(NamespaceId{}, "a").error().kind, ErrorKind::not_found);
  EXPECT_EQ(world.ask(base + tokens_of(2, 50), {.session = "a"}, 0).reason, kv::MissReason::fresh);
}

TEST_F(Inspect, RunningSessionIsNotForgotten) {
  world.submit(tokens_of(1, 100), {.session = "a"}, 50);
  world.scheduler.step();
  EXPECT_EQ(world.scheduler.forget_session(NamespaceId{}, "a").error().kind, ErrorKind::conflict);
  world.run();
  EXPECT_TRUE(world.scheduler.forget_session(NamespaceId{}, "a").has_value());
  EXPECT_EQ(world.runner.used(), 0);
}

TEST_F(Inspect, TreeShowsRunsAndWhoEndsInThem) {
  const Tokens base = tokens_of(1, 100);
  world.ask(base + tokens_of(2, 50), {.id_slot = SlotId{0}}, 0);
  world.ask(base + tokens_of(3, 70), {.id_slot = SlotId{1}}, 0);
  const TreeNode root = world.scheduler.tree(NamespaceId{}, 10, 100);
  ASSERT_EQ(root.children.size(), 1U);
  const TreeNode& run = root.children[0];
  EXPECT_EQ(run.length, 100);
  EXPECT_EQ(run.sequences, 2);
  EXPECT_TRUE(run.ends.empty());
  ASSERT_EQ(run.children.size(), 2U);
  EXPECT_EQ(run.children[0].begin, 100);
  EXPECT_EQ(run.children[0].ends.size(), 1U);
  EXPECT_TRUE(world.scheduler.tree(NamespaceId{4}, 10, 100).children.empty());
}

TEST_F(Inspect, TreeIsBoundedInDepthAndNodes) {
  const Tokens base = tokens_of(1, 100);
  for (int i = 0; i < 3; ++i) world.ask(base + tokens_of(2 + i, 50), {}, 0);
  EXPECT_EQ(world.scheduler.tree(NamespaceId{}, 1, 100).children[0].hidden_children, 3);
  const TreeNode few = world.scheduler.tree(NamespaceId{}, 10, 2);
  EXPECT_EQ(few.children[0].children.size(), 1U);
  EXPECT_EQ(few.children[0].hidden_children, 2);
}

}  // namespace
}  // namespace coppice::sched
