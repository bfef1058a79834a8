#include "tier/export.h"

#include <fstream>
#include <sstream>

#include "tier/disk_tier_for_test.h"
#include "tier/import.h"

namespace coppice::tier {
namespace {

struct ExportTier : DiskTier {
  static void none(std::uint64_t, std::uint64_t) {}
  std::string file() const { return current().sub("base.kv"); }
  std::string other_dir() const { return current().sub("other"); }
  void fill(const BlockId& root = kModel) {
    open();
    put_all(chain_of(root, prompt, 4, kStateBytes));
    put_all(chain_of(root, second, 4, kStateBytes));
    tiers->put_record("session", "s1", "a text");
    tiers->put_record(kRootRecordKind, hex(kModel), "model A");
    flush();
  }
  Result<Exported> export_to(const std::string& path, const std::vector<std::string>& chains = {}) {
    auto cache = CacheReader::open(files, options.disk->dir);
    if (!cache) return std::unexpected(cache.error());
    return export_cache(*cache, *files, chains, path, none);
  }
  Result<Imported> import_to(const std::string& dir, bool mix = false) {
    return import_file(files, file(), dir, mix, none);
  }
  // The tiers on another folder from now on.
  void use(const std::string& dir) {
    tiers.reset();
    options.disk->dir = dir;
    open();
  }
  const Tokens prompt = numbers(1, 10), second = numbers(500, 8);
};

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

TEST_F(ExportTier, B20_AnotherMachineGoesOnFromWhatWasExported) {
  fill();
  const auto exported = export_to(file());  // while the server runs
  ASSERT_TRUE(exported) << exported.error().message;
  EXPECT_EQ(exported->blocks, 5U);
  EXPECT_EQ(exported->records, 2U);
  const auto imported = import_to(other_dir());
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->blocks.blocks, 5U);
  EXPECT_EQ(imported->blocks.bytes, exported->bytes);
  use(other_dir());
  EXPECT_EQ(restore(kModel, prompt), 3U);
  EXPECT_EQ(restore(kModel, second), 2U);
  EXPECT_EQ(tiers->records("session").at("s1"), "a text");
}

TEST_F(ExportTier, WhatIsThereIsSkipped) {
  fill();
  ASSERT_TRUE(export_to(file()));
  use(other_dir());
  put_all(chain_of(kModel, prompt, 4, kStateBytes));
  tiers->put_record("session", "s1", "newer");
  flush();
  tiers.reset();
  auto imported = import_to(other_dir());
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->blocks.blocks, 2U);
  EXPECT_EQ(imported->blocks.known, 3U);
  EXPECT_EQ(imported->known_records, 1U);
  imported = import_to(other_dir());
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->blocks.blocks, 0U);
  EXPECT_EQ(imported->records, 0U);
  open();
  EXPECT_EQ(tiers->records("session").at("s1"), "newer");
}

TEST_F(ExportTier, OneConversationGoesWithWhatItGoesOnFromAndNoOthersTexts) {
  fill();
  const auto chain = chain_of(kModel, prompt, 4, kStateBytes);
  const auto exported = export_to(file(), {short_hex(chain[2].id)});
  ASSERT_TRUE(exported) << exported.error().message;
  EXPECT_EQ(exported->blocks, 3U);
  EXPECT_EQ(exported->records, 1U);
  ASSERT_TRUE(import_to(other_dir()));
  use(other_dir());
  EXPECT_EQ(restore(kModel, prompt), 3U);
  EXPECT_EQ(restore(kModel, second), 0U);
  EXPECT_TRUE(tiers->records("session").empty());
  EXPECT_EQ(export_to(file() + "2", {"zz"}).error().message, "no block's name begins with zz");
  EXPECT_EQ(export_to(file() + "2", {""}).error().message, "several blocks' names begin with ");
  EXPECT_FALSE(std::filesystem::exists(file() + "2"));
}

TEST_F(ExportTier, NoFileIsReplacedAndAFailedExportLeavesNone) {
  fill();
  write_file(file(), "mine");
  EXPECT_FALSE(export_to(file()));
  EXPECT_EQ(bytes_of_file(file()), "mine");
  std::filesystem::remove(file());
  files->before = [](FileCall call, const std::string&) -> Result<void> {
    if (call == FileCall::sync) return disk_error("no space left on device", "full");
    return {};
  };
  EXPECT_FALSE(export_to(file()));
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_FALSE(std::filesystem::exists(file() + ".part"));
}

// Wherever a byte is wrong and wherever the file ends: refused, and nothing is made.
TEST_F(ExportTier, ADamagedFileIsRefusedBeforeAnythingChanges) {
  fill();
  ASSERT_TRUE(export_to(file()));
  const std::string good = bytes_of_file(file());
  for (std::size_t at = 0; at < good.size(); at += at < 400 ? 1 : 13) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    write_file(file(), bad);
    ASSERT_FALSE(import_to(other_dir())) << at;
    write_file(file(), good.substr(0, at));
    ASSERT_FALSE(import_to(other_dir())) << at;
  }
  write_file(file(), good + "x");
  EXPECT_FALSE(import_to(other_dir()));
  EXPECT_FALSE(std::filesystem::exists(other_dir()));
  write_file(file(), good);
  EXPECT_TRUE(import_to(other_dir()));
}

TEST_F(ExportTier, AnotherVersionIsRefusedByName) {
  fill();
  ASSERT_TRUE(export_to(file()));
  std::string bytes = bytes_of_file(file());
  bytes[8] = 9;
  write_file(file(), bytes);
  EXPECT_NE(import_to(other_dir()).error().message.find("has format 9.1, and this version knows 1.1"),
            std::string::npos);
}

TEST_F(ExportTier, AnotherModelsBlocksAreRefusedUnlessAskedFor) {
  fill();
  ASSERT_TRUE(export_to(file()));
  const BlockId other_model = root_of("model B", "");
  use(other_dir());
  put_all(chain_of(other_model, prompt, 4, kStateBytes));
  tiers->put_record(kRootRecordKind, hex(other_model), "model B");
  flush();
  tiers.reset();
  const auto refused = import_to(other_dir());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the file's blocks are of model A, the folder's of model B"),
            std::string::npos);
  ASSERT_TRUE(import_to(other_dir(), true));
  open();
  EXPECT_EQ(restore(kModel, prompt), 3U);
  EXPECT_EQ(restore(other_model, prompt), 3U);
}

TEST_F(ExportTier, BlocksOfAnotherLengthAreRefused) {
  fill();
  ASSERT_TRUE(export_to(file()));
  tiers.reset();
  options.block_tokens = 2;
  use(other_dir());
  put_all(chain_of(kModel, prompt, 2, kStateBytes));
  flush();
  tiers.reset();
  for (const bool mix : {false, true}) {
    EXPECT_NE(import_to(other_dir(), mix).error().message.find("of 4 tokens, the folder's of 2"), std::string::npos);
  }
}

TEST_F(ExportTier, AFolderInUseTakesNothingIn) {
  fill();
  ASSERT_TRUE(export_to(file()));
  EXPECT_EQ(import_to(options.disk->dir).error().kind, ErrorKind::unavailable);
}

TEST_F(ExportTier, WhatIsBadIsLeftOutWithWhatGoesOnFromIt) {
  fill();
  tiers.reset();
  std::fstream segment(in_folder("00000001.seg"), std::ios::in | std::ios::out | std::ios::binary);
  segment.seekp(static_cast<std::streamoff>(record_size(4, kStateBytes) + 150));
  segment << '\x7f';
  segment.close();
  const auto exported = export_to(file());
  ASSERT_TRUE(exported);
  EXPECT_EQ(exported->bad, 1U);
  EXPECT_EQ(exported->blocks, 3U);
  const auto imported = import_to(other_dir());
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->blocks.misfit, 0U);
}

}  // namespace
}  // namespace coppice::tier
