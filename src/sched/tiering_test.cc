// KV that left the cells comes back from the tiers (spec B18, B20), and never wrongly: every answer is checked.
#include <gtest/gtest.h>

#include <random>
#include <semaphore>

#include "sched/tiered_world.h"

namespace coppice::sched {
namespace {

TEST(Tiering, B18_WhatWasEvictedComesBackFromHostMemory) {
  TieredWorld t;
  const Tokens one = tokens_of(1, 150), two = tokens_of(2, 150);
  t.ask(one, {.session = "one"});
  t.ask(two, {.session = "two"});  // needs the cells of the first
  const Tokens next = t.world.next_turn(one, 4, tokens_of(3, 5));
  const Report report = t.ask(next, {.session = "one"});
  // All of the first turn but the last token sampled, which was never evaluated.
  EXPECT_EQ(report.computed, 5 + 1);
  EXPECT_GT(report.reused_host, 0);
  EXPECT_EQ(report.reused() + report.computed, static_cast<TokenPos>(next.size()));
  EXPECT_EQ(report.source, kv::Source::host);
  EXPECT_EQ(report.reason, kv::MissReason::none);
}

TEST(Tiering, B20_WhatATurnLeftUnsavedIsSavedBeforeTheNextRequestTakesItsCells) {
  TieredWorld t;
  const Tokens one = tokens_of(1, 150), two = tokens_of(2, 150);
  const auto first = t.world.submit(one, {}, 2);
  while (!first->finished) t.world.scheduler.step();
  ASSERT_LT(t.tiers->stats().host.blocks, 10U) << "the turn's end is saved already";
  const auto second = t.world.submit(two, {}, 2);  // before the engine is idle
  t.settle();
  EXPECT_EQ(second->text, t.world.right_text(two, 2));
  EXPECT_EQ(t.ask(t.world.next_turn(one, 2, tokens_of(3, 5))).computed, 5 + 1);
}

// Whoever reads an answer as it comes does not wait for what is saved behind it.
TEST(Tiering, B20_WhileAnAnswerRunsSavingTakesASixteenthOfTheTime) {
  TieredWorld t({}, 1U << 20U, 400);
  t.world.runner.on_decode = [&](auto) { t.world.clock.advance(std::chrono::milliseconds(1)); };
  Duration saving{0};
  t.world.runner.on_save = [&] {
    saving += std::chrono::milliseconds(1);
    t.world.clock.advance(std::chrono::milliseconds(1));
  };
  const auto answer = t.world.submit(tokens_of(1, 150), {.session = "one"}, 96);
  while (!answer->finished) t.world.scheduler.step();
  const Duration all = t.world.clock.now().time_since_epoch();
  EXPECT_GT(saving, Duration{0});
  EXPECT_LE(saving, (all - saving) / 15 + std::chrono::milliseconds(1)) << "the first is saved to see what it costs";
  t.settle();
  EXPECT_EQ(t.tiers->stats().host.blocks, 16U) << "the rest of 245 tokens' when nobody waits";
}

TEST(Tiering, B20_OnlyThePartThatCellsDoNotHoldIsRestored) {
  TieredWorld t;
  const Tokens base = tokens_of(1, 100);
  t.ask(base + tokens_of(2, 60), {.session = "one"});
  t.ask(tokens_of(9, 20) + tokens_of(3, 80), {.session = "two"});  // takes the end of the first
  const std::uint64_t restored_before = t.world.runner.tokens_restored();
  const Report report = t.ask(base + tokens_of(2, 60) + tokens_of(4, 3), {.session = "one"});
  EXPECT_EQ(report.computed, 3);
  EXPECT_GT(report.reused_slot + report.reused_donor, 0);
  EXPECT_EQ(t.world.runner.tokens_restored() - restored_before, static_cast<std::uint64_t>(report.reused_host));
}

TEST(Tiering, B20_ASharedBeginningIsStoredOnce) {
  TieredWorld t;
  const Tokens base = tokens_of(1, 4 * kBlock);
  t.ask(base + tokens_of(2, kBlock), {.session = "one"}, 0);
  const auto before = t.tiers->stats().host.blocks;
  t.ask(base + tokens_of(3, kBlock), {.session = "two"}, 0);
  EXPECT_EQ(t.tiers->stats().host.blocks, before + 1);
}

TEST(Tiering, B24_OtherNamespacesFindNothing) {
  TieredWorld t;
  const Tokens prompt = tokens_of(1, 150);
  t.ask(prompt);
  EXPECT_EQ(t.ask(prompt, {.ns = NamespaceId{1}}).reused(), 0);
}

TEST(Tiering, A5_WithoutCachePromptNothingIsSavedOrRestored) {
  TieredWorld t;
  t.ask(tokens_of(1, 150), {.cache_prompt = false});
  EXPECT_EQ(t.tiers->stats().host.blocks, 0U);
  t.ask(tokens_of(1, 150));
  t.ask(tokens_of(2, 150));
  EXPECT_EQ(t.ask(tokens_of(1, 150), {.cache_prompt = false}).reused(), 0);
}

TEST(Tiering, B20_ARestartFindsSessionsOfBefore) {
  tier::TempFolder dir;
  const Tokens prompt = tokens_of(1, 100);
  Tokens next;
  {
    TieredWorld t(disk_in(dir.path()));
    t.ask(prompt, {.session = "one"});
    next = t.world.next_turn(prompt, 4, tokens_of(3, 5));
    const tier::FlushResult flushed = t.flush();
    EXPECT_GT(t.tiers->stats().disk.blocks, 0U);
    EXPECT_EQ(flushed.failed, 0U);
  }
  TieredWorld t(disk_in(dir.path()));
  const Report report = t.ask(next, {.session = "one"});
  EXPECT_EQ(report.computed, 5 + 1);
  EXPECT_EQ(report.reused_disk, static_cast<TokenPos>(next.size()) - report.computed);
  EXPECT_EQ(report.source, kv::Source::disk);
}

TEST(Tiering, B20_AnotherFingerprintFindsNothing) {
  tier::TempFolder dir;
  {
    TieredWorld t(disk_in(dir.path()));
    t.ask(tokens_of(1, 100), {.session = "one"});
    t.flush();
  }
  ManualClock clock;
  obs::Metrics metrics;
  const auto tiers = *tier::Tiers::open(
      {.host_bytes_max = 1U << 20U, .disk = disk_in(dir.path()), .block_tokens = kBlock}, clock, metrics);
  World other({.n_cells = 200, .n_seqs = 8, .n_batch = 64},
              {.n_slots = 2, .tier = {.tiers = tiers.get(), .fingerprint = "another model"}});
  EXPECT_EQ(other.ask(tokens_of(1, 100), {.session = "one"}).reused(), 0);
}

TEST(Tiering, OneShotPromptsAreWrittenOnlyOnceTheyAreShared) {
  tier::TempFolder dir;
  TieredWorld t(disk_in(dir.path()));
  t.ask(tokens_of(1, 100));
  EXPECT_EQ(t.flush().blocks, 0U);
  EXPECT_EQ(t.tiers->stats().disk.blocks, 0U);
  t.ask(tokens_of(1, 100) + tokens_of(2, 10), {.session = "one"});
  t.flush();
  EXPECT_GE(t.tiers->stats().disk.blocks, 100U / kBlock);
}

TEST(Tiering, B18_APausedRequestComesBackWithoutComputingAgain) {
  TieredWorld t;
  const auto a = t.world.submit(tokens_of(1, 90), {.session = "a"}, 60);
  const auto b = t.world.submit(tokens_of(2, 90), {.session = "b"}, 60);
  t.settle();
  EXPECT_EQ(a->text, t.world.right_text(tokens_of(1, 90), 60));
  EXPECT_EQ(b->text, t.world.right_text(tokens_of(2, 90), 60));
  const std::int32_t pauses = a->report().pauses + b->report().pauses;
  EXPECT_GT(pauses, 0);
  // Each prompt once, and after a pause the one token at its end that must be evaluated.
  EXPECT_LE(a->report().computed + b->report().computed, 180 + pauses);
}

TEST(Tiering, ExplainSaysWhatTheRequestThenDoes) {
  TieredWorld t;
  const Tokens one = tokens_of(1, 150);
  t.ask(one, {.session = "one"});
  t.ask(tokens_of(2, 150), {.session = "two"});
  const Explanation e = t.world.scheduler.explain(one + tokens_of(3, 5), {.session = "one"});
  const Report report = t.ask(one + tokens_of(3, 5), {.session = "one"});
  EXPECT_EQ(e.reused, report.reused());
  EXPECT_EQ(e.computed, report.computed);
  EXPECT_EQ(e.source, report.source);
}

// Servers that come and go on one folder, each stopped at any moment; whatever the next one finds must be right.
TEST(Tiering, C_NoRestartGivesAWrongAnswer) {
  tier::TempFolder dir;
  std::mt19937 random(7);
  const auto pick = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  TokenPos from_disk = 0;
  for (int life = 0; life < 20; ++life) {
    TieredWorld t(disk_in(dir.path()), 20'000);
    std::vector<std::pair<std::shared_ptr<Outcome>, Tokens>> open;
    for (int i = 0; i < 12; ++i) {
      const Tokens prompt = tokens_of(pick(4), 40 + pick(60)) + tokens_of(10 + pick(3), pick(40));
      open.emplace_back(t.world.submit(prompt, {.session = pick(2) == 0 ? "s" : ""}, 5), prompt);
      for (int steps = pick(12); steps > 0; --steps) t.world.scheduler.step();
    }
    if (pick(3) == 0) t.flush();
    if (pick(3) != 0) t.settle();
    for (const auto& [outcome, prompt] : open) {
      if (!outcome->finished) continue;
      EXPECT_EQ(outcome->text, t.world.right_text(prompt, 5));
      from_disk += outcome->report().reused_disk;
    }
    t.world.scheduler.fail_all({ErrorKind::unavailable, "stopped", {}}, false);
  }
  EXPECT_GT(from_disk, 0);
}

// The disk's thread is inside a read that does not return. Who waits for it goes on after a while.
TEST(Tiering, B20_ADiskThatHangsKeepsNobodyWaitingForEver) {
  tier::TempFolder dir;
  const Tokens prompt = tokens_of(1, 100);
  {
    TieredWorld t(disk_in(dir.path()));
    t.ask(prompt, {.session = "one"});
    t.flush();
  }
  std::counting_semaphore<> released{0};
  const auto files = std::make_shared<tier::FaultyFiles>();
  files->before = [&](tier::FaultyFiles::Call call, const std::string&) -> Result<void> {
    if (call == tier::FaultyFiles::Call::read) released.acquire();
    return {};
  };
  tier::DiskOptions disk = disk_in(dir.path());
  disk.own_thread = true;
  disk.files = files;
  released.release(100);  // what opening reads
  TieredWorld t(disk);
  while (released.try_acquire()) {
  }
  const auto outcome = t.world.submit(prompt + tokens_of(2, 5), {.session = "one"});
  for (int i = 0; i < 20; ++i) t.world.scheduler.step();
  EXPECT_FALSE(outcome->ended());
  ASSERT_TRUE(t.world.scheduler.waits_for_disk());
  ASSERT_TRUE(t.world.scheduler.next_deadline().has_value());
  t.world.clock.advance(*t.world.scheduler.next_deadline() - t.world.clock.now());
  while (!outcome->ended()) {
    t.world.scheduler.step();
    t.world.scheduler.check_invariants();
  }
  EXPECT_EQ(outcome->report().computed, 105);
  EXPECT_EQ(outcome->text, t.world.right_text(prompt + tokens_of(2, 5), 4));
  released.release(1000);
}

TEST(Tiering, ABlockThatCannotBeRestoredIsComputedAndGone) {
  // The runner of another model refuses the bytes: a block of half the size.
  TieredWorld t;
  const Tokens prompt = tokens_of(1, 3 * kBlock + 1);
  const tier::BlockId root = tier::root_of("model", "0");
  const Tokens first(prompt.begin(), prompt.begin() + kBlock);
  const auto wrong = std::make_shared<const std::vector<std::byte>>(std::size_t{8});
  ASSERT_TRUE(t.tiers->put({tier::id_of(root, first), root, 0, first, wrong}, false));
  const Report report = t.ask(prompt);
  EXPECT_EQ(report.computed, 3 * kBlock + 1);
  EXPECT_EQ(report.reused(), 0);
  EXPECT_EQ(t.tiers->stats().quarantined, 1U);
}

}  // namespace
}  // namespace coppice::sched
