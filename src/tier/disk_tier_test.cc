// The tiers with a disk: what survives, what is refused, what is corrupt.
#include <gtest/gtest.h>

#include <fstream>

#include "tier/disk_tier_for_test.h"

namespace coppice::tier {
namespace {

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

TEST_F(DiskTier, AnUnreadableIndexIsPutAsideAndMadeAgain) {
  open();
  put_all(chain_of(kModel, numbers(1, 4), 4, kStateBytes));
  flush();
  const std::string secret = tiers->secret();
  tiers.reset();
  std::ofstream(in_folder("index.sqlite"), std::ios::trunc) << std::string(5000, 'x');
  open();
  EXPECT_EQ(tiers->find(kModel, numbers(1, 4)).tokens, 4);
  EXPECT_EQ(tiers->secret(), secret);
  EXPECT_TRUE(std::filesystem::exists(in_folder("index.sqlite.bad")));
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

}  // namespace
}  // namespace coppice::tier
