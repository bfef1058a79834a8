#include "tier/cache_reader.h"

#include <sqlite3.h>

#include "tier/chains.h"
#include "tier/disk_tier_for_test.h"

namespace coppice::tier {
namespace {

Result<CacheReader> reader_of(const DiskTier& tier) { return CacheReader::open(tier.files, tier.options.disk->dir); }

TEST_F(DiskTier, TheCacheIsReadWhileAServerUsesIt) {
  open();
  put_all(chain_of(kModel, numbers(1, 10), 4, kStateBytes));
  flush();
  auto cache = reader_of(*this);
  ASSERT_TRUE(cache) << cache.error().message;
  ASSERT_EQ(cache->blocks().size(), 3U);
  EXPECT_EQ(cache->full_tokens(), 4);
  EXPECT_EQ(cache->root_of(cache->blocks()[2]), kModel);
  for (const CachedBlock& block : cache->blocks()) {
    EXPECT_EQ(block.problem, "");
    const auto read = cache->read(block);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read->state, *state_of(block.row.block.id, kStateBytes));
  }
  put_all(chain_of(kModel, numbers(50, 4), 4, kStateBytes));
  EXPECT_EQ(flush().failed, 0U);  // the reader stops nobody
}

TEST_F(DiskTier, ABlockThatTheServerMovesIsFoundAgainAndOneItGivesUpIsGone) {
  open();
  const auto chain = chain_of(kModel, numbers(1, 120), 4, 10 * kStateBytes);
  put_all(chain);
  flush();
  restart();  // seals the segments
  auto cache = reader_of(*this);
  ASSERT_TRUE(cache);
  const auto segments = cache->segments();
  tiers->quarantine(chain[1].id);
  flush();
  tiers.reset();
  std::uint64_t gone = 0;
  for (const CachedBlock& block : cache->blocks()) {
    const auto read = cache->read(block);
    if (!read) {
      EXPECT_EQ(read.error().code, kGoneCode) << read.error().message;
      ++gone;
    }
  }
  EXPECT_EQ(gone, 29U);
}

TEST_F(DiskTier, AMovedBlockIsReadWhereItIsNow) {
  open();
  put_all(chain_of(kModel, numbers(1, 8), 4, kStateBytes));
  flush();
  auto cache = reader_of(*this);
  ASSERT_TRUE(cache);
  tiers.reset();
  // As compaction does it: the bytes go into another segment, the index follows, the old segment is removed.
  std::filesystem::rename(in_folder("00000001.seg"), in_folder("00000007.seg"));
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(in_folder("index.sqlite").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "UPDATE blocks SET segment=7", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  for (const CachedBlock& block : cache->blocks()) EXPECT_TRUE(cache->read(block));
}

TEST_F(DiskTier, ChainsSayWhatTheyShare) {
  std::uint64_t now_us = 1'700'000'000'000'000;
  options.disk->wall_us = [&] { return now_us; };
  open();
  put_all(chain_of(kModel, {1, 2, 3, 4, 5, 6, 7, 8, 9}, 4, kStateBytes));
  flush();
  now_us += 60'000'000;
  put_all(chain_of(kModel, {1, 2, 3, 4, 50, 60, 70, 80}, 4, kStateBytes));
  flush();
  const auto cache = reader_of(*this);
  ASSERT_TRUE(cache);
  const auto chains = chains_of(cache->blocks());
  ASSERT_EQ(chains.size(), 2U);
  EXPECT_EQ(chains[0].tokens, 8);  // the one used last
  EXPECT_EQ(chains[0].shared_tokens, 4);
  EXPECT_EQ(chains[0].own_bytes, record_size(4, kStateBytes));
  EXPECT_EQ(chains[1].tokens, 9);
  EXPECT_EQ(chains[1].bytes, 2 * record_size(4, kStateBytes) + record_size(1, kStateBytes));
  const auto order = [&](const Chain& chain) { return cache->blocks()[chain.last].row.use.order; };
  EXPECT_NEAR(static_cast<double>(order(chains[0]) - order(chains[1])), 60e6, 10);
}

// The order of uses is a time, and still an order when the clock is set back.
TEST_F(DiskTier, AClockThatIsSetBackKeepsTheOrderOfUses) {
  std::uint64_t now_us = 1'700'000'000'000'000;
  options.disk->wall_us = [&] { return now_us; };
  open();
  put_all({block_of(kModel, 0, {1}, kStateBytes)});
  flush();
  now_us = 5;
  restart();
  put_all({block_of(kModel, 0, {2}, kStateBytes)});
  flush();
  const auto cache = reader_of(*this);
  ASSERT_TRUE(cache);
  const auto chains = chains_of(cache->blocks());
  EXPECT_EQ(cache->blocks()[chains[0].last].row.block.tokens, Tokens{2});
}

TEST_F(DiskTier, AFolderThatIsNoCacheIsNotRead) {
  EXPECT_EQ(reader_of(*this).error().kind, ErrorKind::not_found);
  std::filesystem::create_directories(options.disk->dir);
  EXPECT_EQ(reader_of(*this).error().kind, ErrorKind::not_found);
  EXPECT_TRUE(names().empty());  // and nothing is made in it
}

}  // namespace
}  // namespace coppice::tier
