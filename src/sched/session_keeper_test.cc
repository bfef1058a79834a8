// Sessions of before a restart are known again (spec A14, B20), and never under another model or in another namespace.
#include "sched/session_keeper.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "sched/tiered_world.h"

namespace coppice::sched {
namespace {

SessionRecord record_of(const std::string& name) {
  SessionRecord record{.key = {NamespaceId{7}, name},
                       .root = tier::root_of("model", "7"),
                       .parent = "mother",
                       .requests = 3,
                       .last_use_us = 1234567,
                       .blocks = {},
                       .tail = {1, 2, 3}};
  record.blocks.push_back(tier::id_of(record.root, record.tail));
  return record;
}

TEST(SessionRecord, SaysAllAgain) {
  for (const std::string& name : {std::string("one"), std::string("a/b"), std::string("\xff\x00 x", 4)}) {
    const SessionRecord before = record_of(name);
    const auto after = read_session_record(record_key(before.key, before.root), to_text(before));
    ASSERT_TRUE(after.has_value()) << name;
    EXPECT_EQ(after->key, before.key);
    EXPECT_EQ(after->root, before.root);
    EXPECT_EQ(after->parent, before.parent);
    EXPECT_EQ(after->requests, before.requests);
    EXPECT_EQ(after->last_use_us, before.last_use_us);
    EXPECT_EQ(after->blocks, before.blocks);
    EXPECT_EQ(after->tail, before.tail);
  }
}

TEST(SessionRecord, WhatIsNoneIsNotRead) {
  const std::string text = to_text(record_of("one"));
  for (const char* key : {"", "7", "7/", "7/ab", "7/ab/", "/ab/one", "x/ab/one", "-7/ab/one"}) {
    EXPECT_FALSE(read_session_record(key, text).has_value()) << key;
  }
  std::string changed = text;
  changed.replace(changed.find(R"("version":1)"), 11, R"("version":2)");
  for (const std::string& bad : {changed, std::string("{}"), std::string("x"), text.substr(0, text.size() / 2)}) {
    EXPECT_FALSE(read_session_record("7/ab/one", bad).has_value()) << bad;
  }
}

TEST(SessionKeeper, SaysWhatDiffersBetweenTwoModels) {
  EXPECT_EQ(fingerprint_difference("model=ab k=1 v=1", "model=ab k=8 v=1"), "k: 1 -> 8");
  EXPECT_EQ(fingerprint_difference("model=ab", "model=cd lora=x*1"), "lora: none -> x*1, model: ab -> cd");
  EXPECT_EQ(fingerprint_difference("model=0123456789abcdef", "model=x"), "model: 0123456789ab -> x");
  EXPECT_EQ(fingerprint_difference("y=0123456789ab/1", "y=0123456789ab/2"), "y: 0123456789ab/1 -> 0123456789ab/2");
  EXPECT_EQ(fingerprint_difference("same", "same"), "");
}

class Restart : public testing::Test {
 protected:
  // A server's life that ends in order, or is killed after its last flush.
  std::unique_ptr<TieredWorld> start(const std::string& fingerprint = "model") {
    auto disk = disk_in(dir_.path());
    disk.wall_us = [this] { return wall_us_; };
    return std::make_unique<TieredWorld>(disk, 1U << 20U, 200, fingerprint);
  }
  const Tokens prompt_ = tokens_of(1, 6 * kBlock + 5);
  tier::TempFolder dir_;
  std::uint64_t wall_us_ = 1'000'000'000;
};

TEST_F(Restart, B20_SessionsAreListedWithWhatTheTiersHoldOfThem) {
  {
    const auto t = start();
    t->ask(tokens_of(2, 3), {.session = "small"});
    t->ask(prompt_, {.session = "one"});
    t->ask(prompt_, {.session = "one", .parent_session = "mother"});
    t->flush();
  }
  wall_us_ += 90'000'000;
  const auto t = start();
  const std::vector<SessionInfo> all = t->world.scheduler.sessions({}, 10);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "one");
  EXPECT_EQ(all[0].parent, "mother");
  EXPECT_EQ(all[0].requests, 2);
  EXPECT_EQ(all[0].prompt_tokens, static_cast<TokenPos>(prompt_.size()));
  EXPECT_EQ(all[0].held, 0);
  EXPECT_FALSE(all[0].place.has_value());
  EXPECT_EQ(all[0].in_host, 0);
  EXPECT_EQ(all[0].on_disk, all[0].prompt_tokens);
  EXPECT_EQ(all[0].idle, std::chrono::seconds(90));
  EXPECT_EQ(all[1].name, "small");
  EXPECT_TRUE(t->world.scheduler.sessions(NamespaceId{1}, 10).empty());
}

TEST_F(Restart, A14_TheNextTurnHasAReasonOfItsOwn) {
  {
    const auto t = start();
    t->ask(prompt_, {.session = "one"});
    t->flush();
  }
  const Tokens diverging = Tokens(prompt_.begin(), prompt_.begin() + 40) + tokens_of(9, 30);
  const auto t = start();
  const Explanation e = t->world.scheduler.explain(diverging, {.session = "one"});
  EXPECT_EQ(e.reason, kv::MissReason::diverged);
  EXPECT_EQ(e.diverged_at, 40);
  const Report report = t->ask(diverging, {.session = "one"});
  EXPECT_EQ(report.reason, kv::MissReason::diverged);
  EXPECT_EQ(report.reused_disk, 40);
  EXPECT_EQ(report.source, kv::Source::disk);
  const Report other = t->ask(tokens_of(8, 20), {.session = "another"});
  EXPECT_EQ(other.reason, kv::MissReason::fresh);
}

TEST_F(Restart, A14_BlocksThatAreGoneWereEvicted) {
  const Tokens next = prompt_ + tokens_of(3, 5);
  {
    const auto t = start();
    t->ask(prompt_, {.session = "one"});
    t->flush();
    // As the disk's budget would: the ends of chains first.
    const tier::Found found = t->tiers->find(tier::root_of("model", "0"), prompt_);
    t->tiers->quarantine(found.blocks.at(3));
    t->flush();
  }
  const auto t = start();
  const SessionInfo one = t->world.scheduler.session({}, "one").value();
  EXPECT_EQ(one.prompt_tokens, static_cast<TokenPos>(prompt_.size()));
  EXPECT_EQ(one.on_disk, 3 * kBlock);
  const Report report = t->ask(next, {.session = "one"});
  EXPECT_EQ(report.reused_disk, 3 * kBlock);
  EXPECT_EQ(report.reason, kv::MissReason::evicted);
}

TEST_F(Restart, B20_AnotherModelKnowsNoneOfThemAndTheFirstOneStillDoes) {
  {
    const auto t = start();
    t->ask(prompt_, {.session = "one"});
    t->flush();
  }
  {
    const auto t = start("another model");
    EXPECT_TRUE(t->world.scheduler.sessions({}, 10).empty());
    EXPECT_EQ(t->ask(prompt_, {.session = "one"}).reason, kv::MissReason::fresh);
  }
  EXPECT_EQ(start()->world.scheduler.sessions({}, 10).size(), 1U);
}

TEST_F(Restart, AForgottenSessionDoesNotComeBack) {
  {
    const auto t = start();
    t->ask(prompt_, {.session = "one"});
    t->ask(tokens_of(2, 20), {.session = "two"});
    ASSERT_TRUE(t->world.scheduler.forget_session({}, "one").has_value());
    t->flush();
  }
  const auto t = start();
  ASSERT_EQ(t->world.scheduler.sessions({}, 10).size(), 1U);
  EXPECT_EQ(t->world.scheduler.sessions({}, 10)[0].name, "two");
}

TEST_F(Restart, B20_AKillLosesNothingThatWasFlushed) {
  tier::TempFolder copy;
  const auto t = start();
  t->ask(prompt_, {.session = "one"});
  t->flush();
  std::filesystem::copy(dir_.path(), copy.path(), std::filesystem::copy_options::recursive);
  const TieredWorld killed(disk_in(copy.path()));
  EXPECT_EQ(killed.tiers->records(kSessionRecords).size(), 1U);
  EXPECT_EQ(const_cast<TieredWorld&>(killed).world.scheduler.sessions({}, 10).at(0).on_disk,
            static_cast<TokenPos>(prompt_.size()));
}

TEST_F(Restart, TheTableHasRoomForSoManyAndNoRecordMore) {
  const auto life = [&](std::size_t sessions_max, const std::string& fingerprint) {
    ManualClock clock;
    obs::Metrics metrics;
    auto tiers = *tier::Tiers::open(
        {.host_bytes_max = 1U << 20U, .disk = disk_in(dir_.path()), .block_tokens = kBlock, .wake = {}}, clock,
        metrics);
    SessionTable table({.sessions_max = sessions_max});
    SessionKeeper keeper({.tiers = tiers.get(), .fingerprint = fingerprint}, tier::BlockKind::cells, clock);
    keeper.load(table);
    const std::size_t found = table.size();
    for (int i = 0; i < 5; ++i) {
      const kv::SessionKey key{{}, fingerprint + std::to_string(i)};
      table.begin(key, std::make_shared<const Tokens>(tokens_of(i, 4)), "", SeqId{0}, clock.now());
      if (const auto* known = table.find(key)) keeper.keep(*known);
    }
    return std::pair(found, tiers->records(kSessionRecords).size());
  };
  EXPECT_EQ(life(100, "m"), std::pair(std::size_t{0}, std::size_t{5}));
  EXPECT_EQ(life(100, "n"), std::pair(std::size_t{0}, std::size_t{10}));
  // Of its own two stay, and two of the other model's.
  const auto [found, records] = life(2, "m");
  EXPECT_EQ(found, 2U);
  EXPECT_EQ(records, 2U + 5U);
}

}  // namespace
}  // namespace coppice::sched
