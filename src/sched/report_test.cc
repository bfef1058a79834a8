// What is reported of every request (spec A13, A14), n > 1, and how requests end.
#include <gtest/gtest.h>

#include "sched/test_world.h"

namespace coppice::sched {
namespace {

Placement session(const std::string& name) { return {.session = name}; }

TEST(Report, A14_NewSessionIsNew) {
  World world;
  EXPECT_EQ(world.ask(tokens_of(1, 10), session("a")).reason, kv::MissReason::fresh);
  EXPECT_EQ(world.ask(tokens_of(2, 10)).reason, kv::MissReason::fresh);
}

TEST(Report, A14_DivergedSaysWhereAndShowsText) {
  World world;
  Tokens prompt = tokens_of(1, 50);
  world.ask(prompt, session("a"));
  prompt[20] = 999;
  const Report report = world.ask(prompt, session("a"));
  EXPECT_EQ(report.reason, kv::MissReason::diverged);
  EXPECT_EQ(report.diverged_at, 20);
  EXPECT_EQ(report.reused_slot, 20);
  EXPECT_NE(report.diverged_text.find("<999>"), std::string::npos);
}

TEST(Report, A14_WithoutSessionTheSlotsTokensAreTheMeasure) {
  World world({}, {.n_slots = 1});
  Tokens prompt = tokens_of(1, 50);
  world.ask(prompt);
  prompt[20] = 999;
  const Report report = world.ask(prompt);
  EXPECT_EQ(report.reason, kv::MissReason::diverged);
  EXPECT_EQ(report.diverged_at, 20);
}

TEST(Report, A14_EvictedWhenTheCellsWentToAnother) {
  World world({.n_cells = 100}, {.n_slots = 1});
  world.ask(tokens_of(1, 50), session("a"));
  world.ask(tokens_of(2, 50), session("b"));  // the two do not fit
  const Report report = world.ask(tokens_of(1, 50), session("a"));
  EXPECT_EQ(report.reason, kv::MissReason::evicted);
  EXPECT_EQ(report.diverged_at, -1);
}

TEST(Report, A14_NotRewindable) {
  World world({.rewind = engine::Rewind::never}, {.n_slots = 1});
  const Tokens prompt = tokens_of(1, 50);
  world.ask(prompt, session("a"));
  // Extends what is held: fine. Asks the same again: the state is past it.
  const Tokens next = world.next_turn(prompt, 4, tokens_of(2, 5));
  EXPECT_EQ(world.ask(next, session("a")).computed, 6);
  const Report again = world.ask(next, session("a"));
  EXPECT_EQ(again.computed, static_cast<TokenPos>(next.size()));
  EXPECT_EQ(again.reason, kv::MissReason::not_rewindable);
}

TEST(Report, A13_CountsAddUp) {
  World world;
  world.ask(tokens_of(1, 50), session("a"));
  const Report report = world.ask(tokens_of(1, 50) + tokens_of(2, 7), session("a"), 9);
  EXPECT_EQ(report.prompt_tokens, 57);
  EXPECT_EQ(report.reused() + report.computed, report.prompt_tokens);
  EXPECT_EQ(report.predicted, 9);
  EXPECT_EQ(report.source, kv::Source::slot);
}

TEST(Report, NPredictZeroOnlyFillsTheCache) {
  World world;
  const auto outcome = world.submit(tokens_of(1, 20), {}, 0);
  world.run();
  EXPECT_EQ(outcome->text, "");
  EXPECT_EQ(outcome->report().predicted, 0);
  EXPECT_EQ(world.runner.used(), 20);
}

TEST(Report, StopWordEndsTheAnswerBeforeIt) {
  World world;
  const Tokens prompt = tokens_of(1, 20);
  const Tokens answer = world.right_tokens(prompt, 5);
  Request request = world.make(prompt, {}, 5);
  request.text.stop = {world.tokenizer.piece(answer[2], false)};
  const auto outcome = world.submit(std::move(request));
  world.run();
  EXPECT_EQ(outcome->text, world.right_text(prompt, 2));
  EXPECT_EQ(outcome->finished->stop, StopKind::stop_word);
  EXPECT_EQ(outcome->finished->stop_word, world.tokenizer.piece(answer[2], false));
}

TEST(Report, EndOfGenerationIsNotText) {
  World world({.eog_one_in = 4});
  const auto outcome = world.submit(tokens_of(3, 20), {}, 200);
  world.run();
  EXPECT_EQ(outcome->finished->stop, StopKind::end_of_generation);
  EXPECT_EQ(outcome->text, world.right_text(tokens_of(3, 20), 200));
}

TEST(Report, NCompletionsComputeThePromptOnce) {
  World world({.n_cells = 1024, .n_seqs = 4}, {.n_slots = 4});
  const Tokens prompt = tokens_of(1, 100);
  std::vector<std::shared_ptr<Outcome>> all{world.submit(prompt, session("a"))};
  for (int i = 0; i < 5; ++i) all.push_back(world.submit(prompt, {.session = "a", .is_fork = true}));
  world.run();
  TokenPos computed = 0;
  for (const auto& outcome : all) {
    EXPECT_EQ(outcome->text, world.right_text(prompt, 4));
    computed += outcome->report().computed;
    EXPECT_NE(outcome->report().reason, kv::MissReason::diverged);
  }
  EXPECT_EQ(computed, 100 + 5);  // each evaluates the last prompt token for its own logits
  // The session stays where its first completion ran.
  const auto slots = world.scheduler.snapshot().slots;
  EXPECT_EQ(slots[static_cast<std::size_t>(all[0]->report().slot.value)].session, "a");
}

TEST(Report, B17_CancelledPrefillKeepsWhatItComputed) {
  World world({.n_batch = 16});
  const Tokens prompt = tokens_of(1, 100);
  const auto cancelled = world.submit(prompt, session("a"));
  for (int i = 0; i < 3; ++i) world.scheduler.step();
  world.scheduler.cancel(RequestId{1});
  EXPECT_EQ(cancelled->error->kind, ErrorKind::cancelled);
  EXPECT_EQ(world.scheduler.running(), 0U);
  EXPECT_EQ(world.ask(prompt, session("a")).reused_slot, 48);
}

TEST(Report, AConcludedAnswerKeepsWhatWasGenerated) {
  World world({.n_cells = 200, .n_batch = 64});
  const Tokens prompt = tokens_of(1, 20);
  const auto outcome = world.submit(prompt, session("a"), 100);
  world.scheduler.conclude(RequestId{1});  // has nothing yet
  EXPECT_FALSE(outcome->ended());
  for (int i = 0; i < 5; ++i) world.scheduler.step();
  world.scheduler.conclude(RequestId{1});
  world.scheduler.check_invariants();
  ASSERT_TRUE(outcome->finished);
  EXPECT_EQ(outcome->finished->stop, StopKind::enough);
  EXPECT_EQ(outcome->text, world.right_text(prompt, 5));
  EXPECT_EQ(outcome->finished->generated, world.right_tokens(prompt, 5));
  EXPECT_EQ(world.ask(world.next_turn(prompt, 5, {7}), session("a")).reused_slot, 24);
}

TEST(Report, APausedRequestCanBeConcluded) {
  World world({.n_cells = 60, .n_seqs = 2, .n_batch = 32}, {.n_slots = 2});
  const auto older = world.submit(tokens_of(1, 20), {}, 35), younger = world.submit(tokens_of(2, 20), {}, 35);
  world.scheduler.step();
  while (world.scheduler.queued() == 0) ASSERT_TRUE(world.scheduler.step());
  const std::string so_far = younger->text;
  world.scheduler.conclude(RequestId{2});
  ASSERT_TRUE(younger->finished);
  EXPECT_EQ(younger->finished->stop, StopKind::enough);
  EXPECT_EQ(younger->report().pauses, 1);
  EXPECT_TRUE(world.right_text(tokens_of(2, 20), 35).starts_with(younger->text));
  EXPECT_GE(younger->text.size(), so_far.size());
  world.run();
  EXPECT_EQ(older->text, world.right_text(tokens_of(1, 20), 35));
}

TEST(Report, CancelInTheQueueAndOfUnknownRequests) {
  World world({}, {.n_slots = 1});
  world.submit(tokens_of(1, 10), {}, 20);
  const auto queued = world.submit(tokens_of(2, 10));
  world.scheduler.step();
  world.scheduler.cancel(RequestId{2});
  EXPECT_EQ(queued->error->kind, ErrorKind::cancelled);
  world.scheduler.cancel(RequestId{77});
  world.run();
}

TEST(Report, UnknownSlotsAndPromptsThatNeverFitAreRefused) {
  World world({.n_cells = 64});
  EXPECT_EQ(world.scheduler.check(world.make({1}, {.id_slot = SlotId{4}})).error().param, "id_slot");
  EXPECT_EQ(world.scheduler.check(world.make({1}, {.id_slot = SlotId{-2}})).error().param, "id_slot");
  EXPECT_EQ(world.scheduler.check(world.make({1}, {.shared_pool_slot = SlotId{4}})).error().param, "shared_pool_slot");
  EXPECT_EQ(world.scheduler.check(world.make({})).error().kind, ErrorKind::invalid_request);
  const Error error = world.scheduler.check(world.make(tokens_of(1, 64))).error();
  EXPECT_EQ(error.kind, ErrorKind::context_overflow);
  EXPECT_NE(error.message.find("prompt is too long: 64 tokens > 63 maximum"), std::string::npos);
  EXPECT_NE(error.message.find("maximum context length is 63 tokens"), std::string::npos);
  EXPECT_TRUE(world.scheduler.check(world.make(tokens_of(1, 63))).has_value());
}

TEST(Report, ProgressBeginsWithWhatIsReused) {
  struct Watcher final : EventSink {
    void on_progress(const Progress& progress) override { seen.push_back(progress); }
    void on_delta(TextDelta) override { EXPECT_FALSE(seen.empty()) << "the counts come before the first text"; }
    void on_finished(Finished) override {}
    void on_failed(Error) override {}
    std::vector<Progress> seen;
  };
  World world;
  world.ask(tokens_of(1, 40));
  const auto watcher = std::make_shared<Watcher>();
  Request request = world.make(tokens_of(1, 40) + tokens_of(2, 10));
  request.report_progress = true;
  request.sink = watcher;
  world.scheduler.submit(std::move(request));
  world.run();
  ASSERT_GE(watcher->seen.size(), 2U);
  EXPECT_EQ(watcher->seen.front().total, 50);
  EXPECT_EQ(watcher->seen.front().reused, 40);
  EXPECT_EQ(watcher->seen.front().processed, 40);
  EXPECT_EQ(watcher->seen.back().processed, 50);
}

// A request that takes the place of a wrong guess: what the guess computed was computed for it, and was not known
// before.
TEST(Report, A13_WhatAWithdrawnGuessComputedCountsAsComputed) {
  World world({.n_batch = 64}, {.n_slots = 2});
  world.ask(tokens_of(1, 100), {.session = "s"});
  const auto guess = world.submit(tokens_of(1, 400), {.session = "s"});
  for (int i = 0; i < 3; ++i) world.scheduler.step();  // 192 tokens beyond the 100 and the answer
  ASSERT_FALSE(guess->ended());
  Request right = world.make(tokens_of(1, 250) + tokens_of(2, 50), {.session = "s"});
  right.replaces = RequestId{world.last_id - 1};
  const auto outcome = world.submit(std::move(right));
  EXPECT_EQ(guess->error->kind, ErrorKind::cancelled);
  world.run();
  EXPECT_EQ(outcome->report().reused(), 100);
  EXPECT_EQ(outcome->report().computed, 200);
}

TEST(Report, A13_AGuessThatHadNotBegunChangesNothing) {
  World world({}, {.n_slots = 1});
  const auto runs = world.submit(tokens_of(3, 20));
  world.scheduler.step();
  const auto guess = world.submit(tokens_of(1, 40));
  Request right = world.make(tokens_of(1, 30));
  right.replaces = RequestId{world.last_id - 1};
  const auto outcome = world.submit(std::move(right));
  EXPECT_TRUE(guess->error);
  world.run();
  EXPECT_EQ(outcome->report().computed, 30);
}

}  // namespace
}  // namespace coppice::sched
