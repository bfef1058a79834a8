// The disk tier at its limits, and while the disk fails or is slow.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "tier/disk_tier_for_test.h"

namespace coppice::tier {
namespace {

using namespace std::chrono_literals;

TEST_F(DiskTier, AFullDiskDegradesToHostOnlyAndRecovers) {
  bool full = false;
  files->torn_bytes = 7;
  files->before = [&](FileCall call, const std::string&) -> Result<void> {
    if (full && call == FileCall::append) return disk_error("no space left on device", "full");
    return {};
  };
  open();
  const Tokens prompt = numbers(1, 12);
  const auto chain = chain_of(kModel, prompt, 4, kStateBytes);
  put_all({chain[0]});
  flush();
  full = true;
  put_all({chain[1], chain[2]});
  const FlushResult result = flush();
  EXPECT_EQ(result.failed, 2U);
  EXPECT_EQ(result.blocks, 0U);
  EXPECT_TRUE(tiers->stats().disk_state.degraded);
  EXPECT_EQ(tiers->stats().disk_state.reason, "no space left on device");
  EXPECT_NE(metrics.text().find("coppice_tier_disk_degraded 1\n"), std::string::npos);
  EXPECT_EQ(tiers->find(kModel, prompt).tokens_in_host, 12);  // nothing is lost
  const std::uint64_t failures = tiers->stats().disk_state.write_failures;
  for (int i = 0; i < 5; ++i) tiers->poll();
  EXPECT_EQ(tiers->stats().disk_state.write_failures, failures);  // it is left alone for a while
  full = false;
  clock.advance(31s);
  tiers->poll();
  tiers->poll();
  EXPECT_FALSE(tiers->stats().disk_state.degraded);
  EXPECT_EQ(flush().failed, 0U);
  restart();
  EXPECT_EQ(restore(kModel, prompt), 3U);
}

TEST_F(DiskTier, AnIndexThatCannotBeWrittenDegradesAndRecovers) {
  open();
  const Tokens prompt = numbers(1, 8);
  put_all(chain_of(kModel, prompt, 4, kStateBytes));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(in_folder("index.sqlite").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(flush().failed, 2U);
  EXPECT_NE(tiers->stats().disk_state.reason.find("index"), std::string::npos);
  sqlite3_close(other);
  EXPECT_EQ(flush().blocks, 2U);
  EXPECT_FALSE(tiers->stats().disk_state.degraded);
  restart();
  EXPECT_EQ(restore(kModel, prompt), 2U);
}

TEST_F(DiskTier, WhatIsEvictedBeforeItCouldBeWrittenIsCounted) {
  options.host_bytes_max = 2 * kStateBytes;
  open();
  files->before = [&](FileCall call, const std::string&) -> Result<void> {
    if (call == FileCall::sync) return disk_error("input/output error");
    return {};
  };
  put_all(chain_of(kModel, numbers(1, 8), 4, kStateBytes));
  EXPECT_EQ(flush().failed, 2U);
  put_all(chain_of(kModel, numbers(50, 8), 4, kStateBytes), false);
  EXPECT_EQ(tiers->stats().disk_state.given_up, 2U);
  EXPECT_EQ(tiers->find(kModel, numbers(1, 8)).tokens, 0);
  files->before = nullptr;
  clock.advance(31s);
  EXPECT_EQ(flush().blocks, 0U);
}

// Each call fails once, wherever it happens; afterwards everything is written and right.
TEST_F(DiskTier, ACallThatFailsOnceCostsNothing) {
  for (const FileCall failing : {FileCall::create, FileCall::append, FileCall::sync, FileCall::rename,
                                 FileCall::truncate, FileCall::sync_folder, FileCall::remove}) {
    for (int nth = 0; nth < 3; ++nth) {
      std::filesystem::remove_all(options.disk->dir);
      open();
      int n_calls = 0;
      files->torn_bytes = 50;
      files->before = [&](FileCall call, const std::string&) -> Result<void> {
        if (call == failing && n_calls++ == nth) return disk_error("failed once");
        return {};
      };
      const Tokens prompt = numbers(1, 80);  // more than one segment
      for (const Block& block : chain_of(kModel, prompt, 4, 10 * kStateBytes)) {
        ASSERT_TRUE(tiers->put(block, true));
        tiers->poll();
      }
      clock.advance(31s);
      for (int i = 0; i < 3; ++i) flush();
      ASSERT_EQ(flush().failed, 0U);
      restart();
      ASSERT_EQ(restore(kModel, prompt), 20U) << static_cast<int>(failing) << " " << nth;
      files->before = nullptr;
      tiers.reset();
    }
  }
}

TEST_F(DiskTier, AnUnreadableDiskLosesTheBlockNotTheServer) {
  open();
  put_all(chain_of(kModel, numbers(1, 8), 4, kStateBytes));
  flush();
  restart();
  files->before = [&](FileCall call, const std::string&) -> Result<void> {
    if (call == FileCall::read) return disk_error("input/output error");
    return {};
  };
  EXPECT_EQ(restore(kModel, numbers(1, 8)), 0U);
  EXPECT_EQ(tiers->stats().quarantined, 1U);
  EXPECT_EQ(tiers->stats().host.bytes, 0U);
}

TEST_F(DiskTier, ANearlyFullFileSystemIsNotFilled) {
  open();
  files->free = 1000;
  put_all(chain_of(kModel, numbers(1, 4), 4, kStateBytes));
  EXPECT_EQ(flush().failed, 1U);
  EXPECT_EQ(tiers->stats().disk_state.segment_bytes, 0U);
}

// The disk's thread stands in a write until it is let go. No sleep, no time: the calls below would wait for ever.
TEST_F(DiskTier, ASlowDiskStopsNobody) {
  options.disk->own_thread = true;
  options.disk->queue_bytes_max = 3 * record_size(4, kStateBytes);
  open();
  std::promise<void> release, reached;
  auto released = release.get_future().share();
  std::atomic<bool> first{true};
  files->before = [&](FileCall call, const std::string&) -> Result<void> {
    if (call == FileCall::append) {
      if (first.exchange(false)) reached.set_value();
      released.wait();
    }
    return {};
  };
  const auto chain = chain_of(kModel, numbers(1, 40), 4, kStateBytes);
  put_all(chain);
  reached.get_future().wait();
  EXPECT_EQ(tiers->find(kModel, numbers(1, 40)).tokens_in_host, 40);
  (void)tiers->poll();
  const std::uint64_t ticket = tiers->flush_begin();
  EXPECT_FALSE(tiers->flush_result(ticket).has_value());
  EXPECT_LE(tiers->stats().disk_state.queue_bytes, options.disk->queue_bytes_max);
  EXPECT_EQ(tiers->stats().disk_state.unwritten, 10U);
  release.set_value();
  EXPECT_EQ(flush().failed, 0U);
  tiers->poll();
  EXPECT_EQ(tiers->flush_result(ticket)->blocks, 10U);
  restart();
  EXPECT_EQ(restore(kModel, numbers(1, 40)), 10U);
}

TEST_F(DiskTier, BlocksBeingWrittenAreNotEvicted) {
  options.host_bytes_max = 2 * kStateBytes;
  open();
  const auto chain = chain_of(kModel, numbers(1, 8), 4, kStateBytes);
  put_all(chain);  // handed out, and not taken in before poll()
  EXPECT_FALSE(tiers->put(block_of(kModel, 0, {77}, kStateBytes), false));
  tiers->poll();
  EXPECT_TRUE(tiers->put(block_of(kModel, 0, {77}, kStateBytes), false));
}

TEST_F(DiskTier, TheHourlyLimitHoldsBlocksBackAndCountsThem) {
  const std::uint64_t record = record_size(4, kStateBytes);
  options.disk->bytes_per_hour_max = 2 * record;
  open();
  const auto chain = chain_of(kModel, numbers(1, 16), 4, kStateBytes);
  put_all(chain);
  const FlushResult result = flush();
  EXPECT_EQ(result.blocks, 2U);
  EXPECT_EQ(result.failed, 2U);
  EXPECT_EQ(tiers->stats().disk_state.written_bytes, 2 * record);
  EXPECT_EQ(tiers->stats().disk_state.held_back, 1U);
  EXPECT_FALSE(tiers->stats().disk_state.degraded);
  clock.advance(3601s);
  EXPECT_EQ(flush().blocks, 2U);
  EXPECT_EQ(tiers->stats().disk_state.written_bytes, 4 * record);
}

// However often it crashes and starts: the hour is the folder's, not the process's.
TEST_F(DiskTier, TheHourlyLimitOutlivesTheProcess) {
  const std::uint64_t record = record_size(4, kStateBytes);
  options.disk->bytes_per_hour_max = 20 * record;
  std::uint64_t wall_us = 1'000'000'000'000, written = 0;
  options.disk->wall_us = [&] { return wall_us; };
  for (int life = 0; life < 30; ++life) {
    const std::string dir = options.disk->dir;
    open();
    put_all(chain_of(kModel, numbers(1000 * life + 1, 12), 4, kStateBytes));
    flush();
    written += tiers->stats().disk_state.written_bytes;
    const std::string crashed = current().sub("life" + std::to_string(life));
    std::filesystem::copy(dir, crashed);  // as a kill leaves it
    tiers.reset();
    options.disk->dir = crashed;
    wall_us += 60'000'000;
  }
  EXPECT_LE(written, 20 * record);
  EXPECT_GE(written, 12 * record);
  wall_us += 3'600'000'000;
  open();
  put_all(chain_of(kModel, numbers(1, 40), 4, kStateBytes));
  EXPECT_EQ(flush().failed, 0U);
}

TEST_F(DiskTier, AnEndInOrderSaysExactlyWhatWasWritten) {
  const std::uint64_t record = record_size(4, kStateBytes);
  options.disk->bytes_per_hour_max = 20 * record;
  std::uint64_t written = 0;
  for (int life = 0; life < 30; ++life) {
    open();
    put_all({chain_of(kModel, numbers(10 * life + 1, 4), 4, kStateBytes)});
    flush();
    written += tiers->stats().disk_state.written_bytes;
    tiers.reset();
    options.disk->wall_us = [] { return std::uint64_t{1}; };  // a clock that was set back ends no hour
  }
  EXPECT_EQ(written, 20 * record);
}

TEST_F(DiskTier, B20_TheBudgetHoldsOnDiskWhateverIsWrittenAndDropped) {
  options.disk->bytes_max = 40000;
  options.disk->segment_bytes = 4096;
  options.host_bytes_max = 100000;
  open();
  std::uint64_t most = 0;
  for (int i = 0; i < 60; ++i) {
    clock.advance(10s);
    put_all(chain_of(kModel, numbers(1000 * i, 4 * (1 + i % 5)), 4, 300));
    flush();
    std::uint64_t bytes = 0;
    for (const FileInfo& file : listing()) {
      if (file.name.ends_with(".seg") || file.name.ends_with(".open")) bytes += file.bytes;
    }
    most = std::max(most, bytes);
    ASSERT_LE(bytes, 40000U);
    ASSERT_EQ(bytes, tiers->stats().disk_state.segment_bytes);
    if (i % 7 == 0)
      tiers->quarantine(tiers->find(kModel, numbers(1000 * (i / 2), 4)).blocks.empty()
                            ? BlockId{}
                            : tiers->find(kModel, numbers(1000 * (i / 2), 4)).blocks[0]);
    tiers->check_invariants();
  }
  EXPECT_GT(most, 25000U);
  EXPECT_GT(tiers->stats().disk.evictions, 0U);
  EXPECT_EQ(restore(kModel, numbers(59000, 20)), 5U);
  restart();
  EXPECT_EQ(restore(kModel, numbers(59000, 20)), 5U);
  tiers.reset();
  options.disk->bytes_max = 8000;  // smaller than what is there
  options.disk->segment_bytes = 2000;
  open();
  EXPECT_LE(tiers->stats().disk.bytes, 8000U);
  put_all(chain_of(kModel, numbers(500, 4), 4, 300));
  EXPECT_EQ(flush().failed, 0U);
  EXPECT_LE(tiers->stats().disk_state.segment_bytes, 8000U);
}

TEST_F(DiskTier, ABlockLargerThanASegmentIsNotWritten) {
  open();
  put_all({block_of(kModel, 0, {1}, 5000)});
  EXPECT_EQ(flush().blocks, 0U);
  EXPECT_EQ(tiers->stats().disk_state.unwritten, 0U);
}

TEST_F(DiskTier, TheShorterBlockGoesFromDiskOnceTheLongerOneIsThere) {
  open();
  put_all({block_of(kModel, 0, {1, 2}, kStateBytes)});
  flush();
  put_all({block_of(kModel, 0, {1, 2, 3}, kStateBytes)}, false);  // takes over the wish to survive
  EXPECT_EQ(tiers->stats().disk.blocks, 2U);                      // until it is written, both are kept
  flush();
  EXPECT_EQ(tiers->stats().disk.blocks, 1U);
  restart();
  EXPECT_EQ(restore(kModel, Tokens{1, 2, 3}), 1U);
  EXPECT_EQ(tiers->stats().disk.blocks, 1U);
}

TEST_F(DiskTier, WhatWasUsedLastIsKeptOverARestart) {
  const std::uint64_t record = record_size(1, 1000);
  options.disk->bytes_max = 16384;
  open();
  std::vector<Block> blocks;
  const auto n = static_cast<Token>((16384 - 4096) / 4 * 3 / record);
  for (Token i = 0; i < n; ++i) blocks.push_back(block_of(kModel, 0, {i}, 1000));
  put_all(blocks);
  flush();
  (void)tiers->lease(std::vector{blocks[0].id});
  restart();
  put_all({block_of(kModel, 0, {100}, 1000)});
  flush();
  EXPECT_TRUE(tiers->contains(blocks[0].id));
  EXPECT_FALSE(tiers->contains(blocks[1].id));
}

}  // namespace
}  // namespace coppice::tier
