#include "tier/cache_check.h"

#include <sqlite3.h>

#include <fstream>

#include "tier/disk_tier_for_test.h"

namespace coppice::tier {
namespace {

struct CheckedTier : DiskTier {
  static void none(std::uint64_t, std::uint64_t) {}
  CheckResult check() { return check_cache(files, options.disk->dir, none).value(); }
  void fill() {
    open();
    prompt = numbers(1, 20);
    put_all(chain_of(kModel, prompt, 4, kStateBytes));
    put_all(chain_of(kModel, numbers(500, 4), 4, kStateBytes));
    flush();
    tiers.reset();
  }
  void overwrite(const std::string& name, std::uint64_t at, const std::string& bytes) const {
    std::fstream file(in_folder(name), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file << bytes;
  }
  void sql(const char* text) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(in_folder("index.sqlite").c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, text, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  }
  Tokens prompt;
};

TEST_F(CheckedTier, AWholeFolderIsWell) {
  fill();
  const CheckResult found = check();
  EXPECT_EQ(found.blocks, 6U);
  EXPECT_EQ(found.bytes, 6 * record_size(4, kStateBytes));
  EXPECT_TRUE(found.bad.empty());
  EXPECT_EQ(found.index_problem, "");
}

TEST_F(CheckedTier, AFlippedBitIsFoundAndOnlyARepairRemovesIt) {
  fill();
  overwrite("00000001.seg", 2 * record_size(4, kStateBytes) + 150, "\x7f");
  const auto before = names();
  for (int i = 0; i < 2; ++i) {
    const CheckResult found = check();
    EXPECT_EQ(found.blocks, 5U);
    EXPECT_EQ(found.lost, 2U);
    ASSERT_EQ(found.bad.size(), 1U);
    EXPECT_EQ(found.bad[0].segment, 1U);
    EXPECT_EQ(found.bad[0].offset, 2 * record_size(4, kStateBytes));
    EXPECT_EQ(found.bad[0].reason, "the record's checksum is wrong");
  }
  const auto repaired = repair_cache(files, options.disk->dir, none);
  ASSERT_TRUE(repaired);
  EXPECT_EQ(repaired->found.bad.size(), 1U);
  EXPECT_EQ(repaired->removed, 3U);
  EXPECT_TRUE(check().bad.empty());
  open();
  EXPECT_EQ(restore(kModel, prompt), 2U);
  EXPECT_EQ(restore(kModel, numbers(500, 4)), 1U);
}

TEST_F(CheckedTier, MissingAndShortSegmentsAndWrongRowsAreFound) {
  fill();
  std::filesystem::resize_file(in_folder("00000001.seg"), 5 * record_size(4, kStateBytes) + 10);
  ASSERT_EQ(check().bad.size(), 1U);
  EXPECT_EQ(check().bad[0].reason, "its segment ends before it");
  sql("UPDATE blocks SET begin=5 WHERE begin=4");
  EXPECT_EQ(check().bad.size(), 5U);  // and what goes on from it
  sql("UPDATE blocks SET begin=4 WHERE begin=5");
  sql("UPDATE blocks SET record_bytes=1000000000000, payload_bytes=999999999872 WHERE begin=16");
  EXPECT_EQ(check().bad.size(), 2U);
  std::filesystem::remove(in_folder("00000001.seg"));
  EXPECT_EQ(check().bad.size(), 6U);
  const auto repaired = repair_cache(files, options.disk->dir, none);
  ASSERT_TRUE(repaired);
  EXPECT_EQ(repaired->removed, 6U);
  EXPECT_TRUE(check().bad.empty());
}

TEST_F(CheckedTier, ADamagedIndexIsReportedAndARepairMakesItAgain) {
  fill();
  const auto bytes = std::filesystem::file_size(in_folder("index.sqlite"));
  overwrite("index.sqlite", 4096, std::string(bytes - 4096, '\xff'));
  const CheckResult found = check();
  EXPECT_NE(found.index_problem, "");
  EXPECT_EQ(found.blocks, 6U);  // that the segments hold
  EXPECT_EQ(std::filesystem::file_size(in_folder("index.sqlite")), bytes);
  const auto repaired = repair_cache(files, options.disk->dir, none);
  ASSERT_TRUE(repaired);
  EXPECT_NE(repaired->found.index_problem, "");
  EXPECT_EQ(check().index_problem, "");
  EXPECT_EQ(check().blocks, 6U);
  open();
  EXPECT_EQ(restore(kModel, prompt), 5U);
}

TEST_F(CheckedTier, AMissingIndexToo) {
  fill();
  std::filesystem::remove(in_folder("index.sqlite"));
  overwrite("00000001.seg", 2 * record_size(4, kStateBytes) + 150, "\x7f");
  const CheckResult found = check();
  EXPECT_NE(found.index_problem, "");
  EXPECT_EQ(found.blocks, 5U);
  EXPECT_EQ(found.bad.size(), 1U);
  const auto repaired = repair_cache(files, options.disk->dir, none);
  ASSERT_TRUE(repaired);
  EXPECT_EQ(repaired->removed, 3U);
  EXPECT_EQ(check().blocks, 3U);
}

TEST_F(CheckedTier, ARepairRefusesAFolderInUse) {
  fill();
  open();
  EXPECT_EQ(repair_cache(files, options.disk->dir, none).error().kind, ErrorKind::unavailable);
}

}  // namespace
}  // namespace coppice::tier
