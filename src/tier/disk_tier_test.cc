// The tiers with a disk: what survives, what the limits do, what happens while the disk fails.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <future>

#include "tier/record.h"
#include "tier/tiers_test_support.h"

namespace coppice::tier {
namespace {

using namespace std::chrono_literals;
using Call = FaultyFiles::Call;

const BlockId kModel = root_of("model", "");
constexpr std::size_t kStateBytes = 100;

struct DiskTier : testing::Test, World {
  DiskTier() : World(folder_path()) {}
  static std::string folder_path() { return current().sub("cache"); }
  static TempFolder& current() {
    static std::unique_ptr<TempFolder> folder;
    static const testing::TestInfo* owner = nullptr;
    const testing::TestInfo* now = testing::UnitTest::GetInstance()->current_test_info();
    if (owner != now) folder = std::make_unique<TempFolder>();
    owner = now;
    return *folder;
  }
  std::string in_folder(const std::string& name) const { return options.disk->dir + "/" + name; }
  void restart() {
    tiers.reset();
    open();
  }
  std::vector<FileInfo> listing() const { return system_files()->list(options.disk->dir).value(); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const FileInfo& file : listing()) found.push_back(file.name);
    std::ranges::sort(found);
    return found;
  }
  std::string start_error() {
    auto opened = Tiers::open(options, clock, metrics);
    return opened ? "" : opened.error().message;
  }
};

TEST_F(DiskTier, B20_WhatWasFlushedIsFoundAndReadAfterARestart) {
  open();
  const Tokens prompt = numbers(1, 10);
  put_all(chain_of(kModel, prompt, 4, kStateBytes));
  const FlushResult flushed = flush();
  EXPECT_EQ(flushed.blocks, 3U);
  EXPECT_EQ(flushed.bytes, 3 * record_size(0, kStateBytes) + 10 * sizeof(Token));
  EXPECT_EQ(flushed.failed, 0U);
  const std::string secret = tiers->secret();
  restart();
  EXPECT_EQ(tiers->secret(), secret);
  const Found found = tiers->find(kModel, prompt);
  EXPECT_EQ(found.tokens, 10);
  EXPECT_EQ(found.tokens_in_host, 0);
  EXPECT_EQ(restore(kModel, prompt), 3U);
  EXPECT_EQ(tiers->find(kModel, prompt).tokens_in_host, 10);
  EXPECT_EQ(tiers->find(root_of("another model", ""), prompt).tokens, 0);
  EXPECT_EQ(tiers->stats().disk.hits, 3U);
}

TEST_F(DiskTier, OnlyWhatIsWantedIsWrittenWithAllThatItGoesOnFrom) {
  open();
  const auto one_shot = chain_of(kModel, numbers(100, 8), 4, kStateBytes);
  const auto chain = chain_of(kModel, numbers(1, 12), 4, kStateBytes);
  put_all(one_shot, false);
  put_all(chain, false);
  EXPECT_EQ(flush().blocks, 0U);
  tiers->want_durable(chain[1].id);
  EXPECT_EQ(flush().blocks, 2U);
  restart();
  EXPECT_EQ(tiers->find(kModel, numbers(1, 12)).tokens, 8);
  EXPECT_EQ(tiers->find(kModel, numbers(100, 8)).tokens, 0);
}

TEST_F(DiskTier, RecordsSurvive) {
  open();
  EXPECT_TRUE(tiers->put_record("session", "a", R"({"n":1})"));
  EXPECT_TRUE(tiers->put_record("session", "b", "x"));
  EXPECT_TRUE(tiers->put_record("pool", "a", std::string("nul\0in it", 9)));
  flush();
  EXPECT_TRUE(tiers->put_record("session", "a", R"({"n":2})"));
  tiers->erase_record("session", "b");
  restart();
  EXPECT_EQ(tiers->records("session").size(), 1U);
  EXPECT_EQ(tiers->records("session").at("a"), R"({"n":2})");
  EXPECT_EQ(tiers->records("pool").at("a").size(), 9U);
}

TEST_F(DiskTier, B20_ASecondServerOnTheFolderIsRefused) {
  open();
  EXPECT_NE(start_error().find("another server uses"), std::string::npos);
  tiers.reset();
  EXPECT_EQ(start_error(), "");
}

TEST_F(DiskTier, AFolderThatIsNotOursIsRefusedAndLeftAsItIs) {
  std::filesystem::create_directories(options.disk->dir);
  std::ofstream(in_folder("thesis.txt")) << "x";
  EXPECT_NE(start_error().find("holds other files"), std::string::npos);
  EXPECT_EQ(names(), std::vector<std::string>{"thesis.txt"});
}

TEST_F(DiskTier, AnotherFormatIsRefused) {
  open();
  tiers.reset();
  std::ofstream(in_folder("coppice-cache")) << "Coppice KV cache, format 99\n";
  EXPECT_NE(start_error().find("format 99"), std::string::npos);
  std::ofstream(in_folder("coppice-cache")) << "something else";
  EXPECT_NE(start_error().find("no cache folder"), std::string::npos);
}

TEST_F(DiskTier, FilesAreTheUsersAlone) {
  open();
  put_all(chain_of(kModel, numbers(1, 4), 4, kStateBytes));
  flush();
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(options.disk->dir).permissions(), perms::owner_all);
  EXPECT_EQ(std::filesystem::status(in_folder("secret")).permissions(), perms::owner_read | perms::owner_write);
  EXPECT_EQ(std::filesystem::status(in_folder("00000001.open")).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(DiskTier, AHostTierIsNeeded) {
  options.host_bytes_max = 0;
  EXPECT_NE(start_error().find("needs host memory"), std::string::npos);
}

TEST_F(DiskTier, EvictedFromMemoryIsStillOnDisk) {
  options.host_bytes_max = 3 * kStateBytes;
  open();
  const Tokens prompt = numbers(1, 12);
  put_all(chain_of(kModel, prompt, 4, kStateBytes));
  flush();
  put_all(chain_of(kModel, numbers(50, 12), 4, kStateBytes), false);
  EXPECT_EQ(tiers->stats().host.evictions, 3U);
  EXPECT_EQ(tiers->find(kModel, prompt).tokens, 12);
  EXPECT_EQ(tiers->find(kModel, prompt).tokens_in_host, 0);
  EXPECT_EQ(restore(kModel, prompt), 3U);  // at the cost of the other, which is nowhere else
  EXPECT_EQ(tiers->find(kModel, numbers(50, 12)).tokens, 0);
  EXPECT_EQ(tiers->stats().host.bytes, 3 * kStateBytes);
}

TEST_F(DiskTier, APrefetchTakesWhatThereIsRoomFor) {
  options.host_bytes_max = 2 * kStateBytes;
  open();
  const auto chain = chain_of(kModel, numbers(1, 12), 4, kStateBytes);
  for (const Block& block : chain) {
    ASSERT_TRUE(tiers->put(block, true));
    flush();
  }
  restart();
  const Lease lease = tiers->lease(tiers->find(kModel, numbers(1, 12)).blocks);
  EXPECT_EQ(tiers->ready(lease), Ready::lost);  // nobody has asked
  tiers->prefetch(lease);
  EXPECT_EQ(tiers->stats().host.bytes, 2 * kStateBytes);  // reserved before it is used
  tiers->poll();
  EXPECT_EQ(tiers->ready(lease), Ready::lost);
  EXPECT_NE(tiers->payload(chain[1].id), nullptr);
  EXPECT_EQ(tiers->payload(chain[2].id), nullptr);
}

// Every byte of a record, one at a time: the block is noticed, removed with what goes on from it, and nothing else is.
TEST_F(DiskTier, B20_ACorruptBlockIsRemovedAndNeverServed) {
  open();
  const Tokens prompt = numbers(1, 12), other = numbers(50, 4);
  const auto chain = chain_of(kModel, prompt, 4, 40);
  put_all(chain);
  put_all(chain_of(kModel, other, 4, 40));
  flush();
  tiers.reset();
  const std::string pristine = current().sub("pristine");
  std::filesystem::copy(options.disk->dir, pristine);
  const std::uint64_t record = record_size(4, 40);
  for (std::uint64_t at = record; at < 2 * record; at += 5) {  // the second block's
    std::filesystem::remove_all(options.disk->dir);
    std::filesystem::copy(pristine, options.disk->dir);
    {
      std::fstream file(in_folder("00000001.seg"), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const auto byte = static_cast<char>(file.get() ^ 0x10);
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte);
    }
    open();
    ASSERT_EQ(tiers->find(kModel, prompt).tokens, 12);
    ASSERT_EQ(restore(kModel, prompt), 1U) << at;
    ASSERT_EQ(tiers->find(kModel, prompt).tokens, 4) << at;
    ASSERT_EQ(restore(kModel, other), 1U);
    ASSERT_EQ(tiers->stats().quarantined, 1U);
    restart();
    ASSERT_EQ(tiers->find(kModel, prompt).tokens, 4) << at;  // from disk too
    put_all({chain[1]});                                     // computed again
    flush();
    restart();
    ASSERT_EQ(restore(kModel, Tokens(prompt.begin(), prompt.begin() + 8)), 2U);
    tiers.reset();
  }
}

TEST_F(DiskTier, ATruncatedSegmentLosesItsEndOnly) {
  open();
  const Tokens prompt = numbers(1, 12);
  put_all(chain_of(kModel, prompt, 4, kStateBytes));
  flush();
  tiers.reset();
  std::filesystem::resize_file(in_folder("00000001.seg"), 3 * record_size(4, kStateBytes) - 1);
  open();
  EXPECT_EQ(tiers->find(kModel, prompt).tokens, 8);
  EXPECT_EQ(restore(kModel, prompt), 2U);
}

TEST_F(DiskTier, AnUnreadableIndexIsPutAside) {
  open();
  put_all(chain_of(kModel, numbers(1, 4), 4, kStateBytes));
  flush();
  const std::string secret = tiers->secret();
  tiers.reset();
  std::ofstream(in_folder("index.sqlite"), std::ios::trunc) << std::string(5000, 'x');
  open();
  EXPECT_EQ(tiers->find(kModel, numbers(1, 4)).tokens, 0);
  EXPECT_EQ(tiers->secret(), secret);
  EXPECT_TRUE(std::filesystem::exists(in_folder("index.sqlite.bad")));
  EXPECT_FALSE(std::filesystem::exists(in_folder("00000001.seg")));  // nobody knows what is in it
}

TEST_F(DiskTier, OtherBlockLengthsOfBeforeAreDropped) {
  open();
  put_all(chain_of(kModel, numbers(1, 12), 4, kStateBytes));
  flush();
  tiers.reset();
  options.block_tokens = 6;
  open();
  EXPECT_EQ(tiers->find(kModel, numbers(1, 12)).tokens, 4);
  tiers->check_invariants();
}

TEST_F(DiskTier, AFullDiskDegradesToHostOnlyAndRecovers) {
  bool full = false;
  files->torn_bytes = 7;
  files->before = [&](Call call, const std::string&) -> Result<void> {
    if (full && call == Call::append) return disk_error("no space left on device", "full");
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
  files->before = [&](Call call, const std::string&) -> Result<void> {
    if (call == Call::sync) return disk_error("input/output error");
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
  for (const Call failing :
       {Call::create, Call::append, Call::sync, Call::rename, Call::truncate, Call::sync_folder, Call::remove}) {
    for (int nth = 0; nth < 3; ++nth) {
      std::filesystem::remove_all(options.disk->dir);
      open();
      int n_calls = 0;
      files->torn_bytes = 50;
      files->before = [&](Call call, const std::string&) -> Result<void> {
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
  files->before = [&](Call call, const std::string&) -> Result<void> {
    if (call == Call::read) return disk_error("input/output error");
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
  files->before = [&](Call call, const std::string&) -> Result<void> {
    if (call == Call::append) {
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
