#include "tier/cache_editor.h"

#include "tier/cache_check.h"
#include "tier/disk_tier_for_test.h"

namespace coppice::tier {
namespace {

struct EditorTier : DiskTier {
  EditorTier() {
    options.disk->wall_us = [this] { return now_us; };
  }
  Result<CacheEditor> editor() { return CacheEditor::open(files, options.disk->dir, 4, 0); }
  // Prompts of 3 blocks each, the first one shared, ten seconds apart.
  void fill(int n) {
    open();
    for (int i = 0; i < n; ++i) {
      Tokens prompt = numbers(1, 4);
      const Tokens own = numbers(100 * (i + 1), 8);
      prompt.insert(prompt.end(), own.begin(), own.end());
      prompts.push_back(prompt);
      put_all(chain_of(kModel, prompt, 4, kStateBytes));
      flush();
      now_us += 10'000'000;
    }
    tiers.reset();
  }
  std::uint64_t now_us = 1'700'000'000'000'000;
  std::vector<Tokens> prompts;
};

const OnProgress kSilent = [](std::uint64_t, std::uint64_t) {};

TEST_F(EditorTier, PruneRemovesWhatWasUsedBeforeATimeAndKeepsWhatOthersNeed) {
  fill(4);
  {
    auto cache = editor();
    ASSERT_TRUE(cache);
    const auto removed = cache->prune({.used_since_us = now_us - 25'000'000, .keep_bytes = {}});
    ASSERT_TRUE(removed);
    EXPECT_EQ(removed->blocks, 4U);  // two blocks of each of the older two
    EXPECT_EQ(removed->bytes, 4 * record_size(4, kStateBytes));
    ASSERT_TRUE(cache->compact(kSilent));
  }
  open();
  EXPECT_EQ(restore(kModel, prompts[0]), 1U);
  EXPECT_EQ(restore(kModel, prompts[1]), 1U);
  EXPECT_EQ(restore(kModel, prompts[2]), 3U);
  EXPECT_EQ(restore(kModel, prompts[3]), 3U);
}

TEST_F(EditorTier, PruneKeepsTheYoungestBytesAndGivesTheOthersBack) {
  fill(30);
  const std::uint64_t record = record_size(4, kStateBytes);
  {
    auto cache = editor();
    ASSERT_TRUE(cache);
    const auto removed = cache->prune({.used_since_us = {}, .keep_bytes = 5 * record});
    ASSERT_TRUE(removed);
    EXPECT_EQ(removed->blocks, 56U);
    ASSERT_TRUE(cache->compact(kSilent));
    EXPECT_LE(cache->segment_bytes(), 6 * record);
  }
  open();
  EXPECT_EQ(restore(kModel, prompts[29]), 3U);
  EXPECT_EQ(restore(kModel, prompts[28]), 3U);
  EXPECT_EQ(restore(kModel, prompts[27]), 1U);
}

// Whatever the limit, what is left is whole chains from their roots on.
TEST_F(EditorTier, PruneNeverCutsAChainInTheMiddle) {
  fill(3);
  const std::uint64_t record = record_size(4, kStateBytes);
  for (std::uint64_t n = 8; n-- > 0;) {
    auto cache = editor();
    ASSERT_TRUE(cache);
    ASSERT_TRUE(cache->prune({.used_since_us = {}, .keep_bytes = n * record}));
    EXPECT_EQ(cache->size(), std::min<std::size_t>(n, 7));
    cache = fail(ErrorKind::internal, "closed");
    const auto found = check_cache(files, options.disk->dir, kSilent);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->blocks, std::min<std::uint64_t>(n, 7));
    EXPECT_TRUE(found->bad.empty());
  }
}

TEST_F(EditorTier, AFolderThatAServerUsesIsNotChanged) {
  fill(1);
  open();
  const auto cache = editor();
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().kind, ErrorKind::unavailable);
  EXPECT_NE(cache.error().message.find("another server uses"), std::string::npos);
}

TEST_F(EditorTier, CompactionGivesUpBlocksThatAreBadWithTheirChains) {
  fill(2);
  auto cache = editor();
  ASSERT_TRUE(cache);
  ASSERT_TRUE(cache->prune({.used_since_us = now_us - 15'000'000, .keep_bytes = {}}));
  files->before = [](FileCall call, const std::string&) -> Result<void> {
    if (call == FileCall::read) return disk_error("input/output error");
    return {};
  };
  const auto bad = cache->compact(kSilent);
  ASSERT_TRUE(bad) << bad.error().message;
  EXPECT_EQ(cache->size(), 0U);
}

TEST_F(EditorTier, ADiskThatFailsStopsThePruningAndHarmsNothing) {
  fill(3);
  {
    auto cache = editor();
    ASSERT_TRUE(cache);
    ASSERT_TRUE(cache->prune({.used_since_us = {}, .keep_bytes = 3 * record_size(4, kStateBytes)}));
    files->before = [](FileCall call, const std::string&) -> Result<void> {
      if (call == FileCall::append) return disk_error("no space left on device", "full");
      return {};
    };
    EXPECT_FALSE(cache->compact(kSilent));
    files->before = nullptr;
  }
  open();
  EXPECT_EQ(restore(kModel, prompts[2]), 3U);
}

}  // namespace
}  // namespace coppice::tier
