// The index is lost or damaged, the segments are there: every block is found again (spec B20).
#include "tier/index_rebuild.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tier/disk_tier_for_test.h"
#include "tier/record.h"
#include "tier/segment_scan.h"

namespace coppice::tier {
namespace {

struct LostIndex : DiskTier {
  LostIndex() { options.disk->bytes_max = 1 << 18; }
  // Blocks in several segments of different ends, and a record.
  void fill() {
    open();
    for (const Tokens& prompt : prompts) put_all(chain_of(kModel, prompt, 4, kStateBytes));
    EXPECT_TRUE(tiers->put_record("session", "a", "x"));
    EXPECT_EQ(flush().failed, 0U);
    blocks = tiers->stats().disk.blocks;
    tiers.reset();
  }
  void garble(const std::string& name, std::uint64_t at, const std::string& bytes) const {
    std::fstream file(in_folder(name), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file << bytes;
  }
  void expect_all() {
    for (const Tokens& prompt : prompts) EXPECT_EQ(restore(kModel, prompt), (prompt.size() + 3) / 4);
    EXPECT_EQ(tiers->stats().quarantined, 0U);
  }
  const std::vector<Tokens> prompts = {numbers(1, 90), numbers(300, 61), numbers(500, 4), numbers(600, 3)};
  std::uint64_t blocks = 0;
};

TEST_F(LostIndex, B20_ADeletedOneIsMadeAgain) {
  fill();
  EXPECT_GT(segments_in(*files, options.disk->dir)->size(), 1U);
  std::filesystem::remove(in_folder("index.sqlite"));
  open();
  EXPECT_EQ(tiers->stats().disk.blocks, blocks);
  EXPECT_TRUE(tiers->records("session").empty());
  expect_all();
  restart();  // once is enough
  EXPECT_EQ(tiers->stats().disk.blocks, blocks);
  expect_all();
}

TEST_F(LostIndex, B20_OneThatSqliteCannotReadIsMadeAgain) {
  fill();
  for (const std::uint64_t at : {0, 100, 4096}) {
    const auto bytes = std::filesystem::file_size(in_folder("index.sqlite"));
    garble("index.sqlite", at, std::string(bytes - at, '\xff'));
    open();
    EXPECT_EQ(tiers->stats().disk.blocks, blocks) << at;
    expect_all();
    tiers.reset();
    EXPECT_TRUE(std::filesystem::exists(in_folder("index.sqlite.bad")));
    std::filesystem::remove(in_folder("index.sqlite.bad"));
  }
}

// Its log would be replayed into the new one.
TEST_F(LostIndex, WhatIsLeftOfItsLogIsNotUsed) {
  open();
  put_all(chain_of(kModel, prompts[0], 4, kStateBytes));
  EXPECT_EQ(flush().failed, 0U);
  const std::string killed = current().sub("killed");
  std::filesystem::copy(options.disk->dir, killed);
  ASSERT_GT(std::filesystem::file_size(killed + "/index.sqlite-wal"), 0U);
  std::filesystem::remove(killed + "/index.sqlite");
  World next(killed);
  next.open();
  EXPECT_EQ(next.restore(kModel, prompts[0]), 23U);
}

TEST_F(LostIndex, ARecordThatIsDamagedCostsItselfAndWhatGoesOnFromIt) {
  fill();
  std::filesystem::remove(in_folder("index.sqlite"));
  const std::uint64_t record = record_size(4, kStateBytes);
  garble("00000001.seg", 2 * record + 40, "garbled");             // in the third one's name
  garble("00000001.seg", 5 * record + 112 + 16 + 20, "garbled");  // in the sixth one's payload
  open();
  EXPECT_EQ(restore(kModel, prompts[0]), 2U);
  EXPECT_EQ(restore(kModel, prompts[1]), 16U);
  EXPECT_EQ(restore(kModel, prompts[2]), 1U);
}

TEST_F(LostIndex, TheBudgetHoldsForWhatIsFoundToo) {
  fill();
  std::filesystem::remove(in_folder("index.sqlite"));
  options.disk->bytes_max = 1 << 14;
  open();
  EXPECT_LE(tiers->stats().disk.bytes, std::uint64_t{1} << 14U);
  EXPECT_GT(tiers->stats().disk.blocks, 0U);
  tiers->check_invariants();
}

// A kill at any read of the search: the next start searches again.
TEST_F(LostIndex, C_KilledWhileItIsMadeAgain) {
  fill();
  std::filesystem::remove(in_folder("index.sqlite"));
  std::vector<std::string> copies;
  files->before = [&](FileCall call, const std::string& path) -> Result<void> {
    if (call != FileCall::read || !path.ends_with(".seg") || copies.size() > 40) return {};
    copies.push_back(current().sub("copy" + std::to_string(copies.size())));
    std::filesystem::copy(options.disk->dir, copies.back());
    return {};
  };
  open();
  EXPECT_GT(copies.size(), 30U);
  for (const std::string& copy : copies) {
    World next(copy);
    EXPECT_EQ(next.open().stats().disk.blocks, blocks) << copy;
    EXPECT_EQ(next.restore(kModel, prompts[0]), 23U);
  }
}

TEST(SegmentScan, PassesOverWhatIsNoRecord) {
  const TempFolder folder;
  const auto files = system_files();
  const auto chain = chain_of(kModel, numbers(1, 12), 4, 50);
  std::string bytes = "some bytes CoppiceB that are none";
  std::vector<std::uint64_t> offsets;
  const auto append = [&](std::span<const std::byte> more) {
    bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
  };
  for (const Block& block : chain) {
    offsets.push_back(bytes.size());
    append(record_head(block));
    append(*block.state);
    bytes += std::string(3, 'C');
  }
  const auto torn = record_head(chain[0]);
  append(std::span(torn).first(100));
  std::ofstream(folder.sub("00000007.seg"), std::ios::binary) << bytes;
  const auto segments = segments_in(*files, folder.path()).value();
  ASSERT_EQ(segments.size(), 1U);
  const auto rows = scan_segment(*files, folder.path(), segments[0]).value();
  ASSERT_EQ(rows.size(), chain.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].block.id, chain[i].id);
    EXPECT_EQ(rows[i].block.tokens, chain[i].tokens);
    EXPECT_EQ(rows[i].segment, 7U);
    EXPECT_EQ(rows[i].offset, offsets[i]);
    EXPECT_EQ(rows[i].record_bytes, record_size(4, 50));
  }
}

}  // namespace
}  // namespace coppice::tier
