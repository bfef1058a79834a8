// A conversation longer than host memory comes back from the disk as a whole (spec B20): what is in the cells already
// makes room for what is still to be read.
#include <gtest/gtest.h>

#include "sched/tiered_world.h"

namespace coppice::sched {
namespace {

constexpr TokenPos kCells = 1200;

class LongChain : public testing::Test {
 protected:
  // Leaves the prompts' blocks on disk, and says how many bytes one takes in host memory.
  void store(const std::vector<Tokens>& prompts) {
    TieredWorld t(disk(), 1U << 20U, kCells);
    for (const Tokens& prompt : prompts) t.ask(prompt, {.session = std::to_string(prompt[0])}, 0);
    ASSERT_EQ(t.flush().failed, 0U);
    const tier::Found found = t.tiers->find(tier::root_of("model", "0"), prompts[0]);
    block_bytes_ = t.tiers->block(found.blocks.at(0))->payload_bytes;
  }
  tier::DiskOptions disk() const {
    tier::DiskOptions options = disk_in(dir_.path());
    options.own_thread = own_thread_;
    return options;
  }
  bool own_thread_ = false;
  std::uint64_t block_bytes_ = 0;
  tier::TempFolder dir_;
};

TEST_F(LongChain, B20_IsRestoredCompletely) {
  const Tokens prompt = tokens_of(1, 40 * kBlock + 7);
  ASSERT_NO_FATAL_FAILURE(store({prompt}));
  for (const std::uint64_t blocks : {1, 2, 7, 39}) {
    TieredWorld t(disk(), blocks * block_bytes_, kCells);
    const Report report = t.ask(prompt + tokens_of(100 + static_cast<int>(blocks), 5), {.session = "one"});
    EXPECT_EQ(report.reused_disk, static_cast<TokenPos>(prompt.size())) << blocks;
    EXPECT_EQ(report.computed, 5) << blocks;
    EXPECT_EQ(report.source, kv::Source::disk);
    EXPECT_LE(t.tiers->stats().host.bytes, blocks * block_bytes_);
  }
}

TEST_F(LongChain, B20_OnlyWhatTheCellsDoNotHoldIsRead) {
  const Tokens prompt = tokens_of(1, 40 * kBlock);
  ASSERT_NO_FATAL_FAILURE(store({prompt}));
  TieredWorld t(disk(), 4 * block_bytes_, kCells);
  t.ask(Tokens(prompt.begin(), prompt.begin() + 30 * kBlock), {.session = "one"}, 0);
  const std::uint64_t before = t.tiers->stats().disk_state.read_bytes;
  const Report report = t.ask(prompt + tokens_of(2, 5), {.session = "one"});
  EXPECT_EQ(report.reused_disk, 10 * kBlock);
  EXPECT_EQ(report.computed, 5);
  const std::uint64_t record = block_bytes_ + 112 + 4 * kBlock;
  EXPECT_EQ(t.tiers->stats().disk_state.read_bytes - before, 10 * record);
}

TEST_F(LongChain, B20_SeveralAtATimeWaitForEachOther) {
  const std::vector<Tokens> prompts = {tokens_of(1, 20 * kBlock), tokens_of(2, 20 * kBlock), tokens_of(3, 20 * kBlock)};
  ASSERT_NO_FATAL_FAILURE(store(prompts));
  for (const std::uint64_t blocks : {2, 5, 20}) {
    TieredWorld t(disk(), blocks * block_bytes_, kCells);
    const Tokens more = tokens_of(100 + static_cast<int>(blocks), 5);
    std::vector<std::shared_ptr<Outcome>> outcomes;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      outcomes.push_back(t.world.submit(prompts[i] + more, {.session = std::to_string(i)}));
    }
    t.settle();
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(outcomes[i]->text, t.world.right_text(prompts[i] + more, 4));
      EXPECT_EQ(outcomes[i]->report().computed, 5) << "request " << i << " with " << blocks << " blocks of memory";
    }
  }
}

TEST_F(LongChain, ABadBlockInTheMiddleCostsWhatFollows) {
  const Tokens prompt = tokens_of(1, 20 * kBlock);
  ASSERT_NO_FATAL_FAILURE(store({prompt}));
  auto options = disk();
  auto files = std::make_shared<tier::FaultyFiles>();
  int reads = 0;
  // Two reads for each record: its head, its payload.
  files->before = [&](tier::FaultyFiles::Call call, const std::string&) -> Result<void> {
    if (call == tier::FaultyFiles::Call::read && ++reads > 2 * 11) return tier::disk_error("bad sector");
    return {};
  };
  options.files = files;
  TieredWorld t(options, 3 * block_bytes_, kCells);
  reads = 0;
  const Report report = t.ask(prompt + tokens_of(2, 5), {.session = "one"});
  EXPECT_EQ(report.reused_disk, 11 * kBlock);
  EXPECT_EQ(report.computed, 9 * kBlock + 5);
}

// The engine sleeps while the disk reads, rather than look again and again.
TEST_F(LongChain, NothingIsDoneWhileAllWaitForTheDisk) {
  const Tokens prompt = tokens_of(1, 20 * kBlock);
  ASSERT_NO_FATAL_FAILURE(store({prompt}));
  own_thread_ = true;
  auto options = disk();
  auto files = std::make_shared<tier::FaultyFiles>();
  std::counting_semaphore<> allowed{0};
  files->before = [&](tier::FaultyFiles::Call call, const std::string& path) -> Result<void> {
    if (call == tier::FaultyFiles::Call::read && path.ends_with(".seg")) allowed.acquire();
    return {};
  };
  options.files = files;
  TieredWorld t(options, 3 * block_bytes_, kCells);
  const auto outcome = t.world.submit(prompt + tokens_of(2, 5), {.session = "one"});
  allowed.release(2 * 3);  // the first three blocks: it is admitted
  while (t.world.scheduler.running() == 0 || !t.world.scheduler.waits_for_disk()) t.world.scheduler.step();
  EXPECT_FALSE(outcome->ended());
  allowed.release(1000);
  t.settle();
  EXPECT_EQ(outcome->report().reused_disk, 20 * kBlock);
}

}  // namespace
}  // namespace coppice::sched
