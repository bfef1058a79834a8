#include <gtest/gtest.h>

#include "tier/tiers_test_support.h"

namespace coppice::tier {
namespace {

TEST(SystemFiles, WritesAndReads) {
  const TempFolder folder;
  const auto files = system_files();
  const std::string path = folder.sub("a"), moved = folder.sub("b");
  {
    const auto file = files->create(path);
    ASSERT_TRUE(file);
    EXPECT_FALSE(files->create(path));  // it is there
    EXPECT_TRUE((*file)->append(std::as_bytes(std::span("0123456789", 10))));
    EXPECT_TRUE((*file)->sync());
  }
  EXPECT_TRUE(files->rename(path, moved));
  EXPECT_TRUE(files->sync_folder(folder.path()));
  std::string text(20, ' ');
  const auto n = files->read(moved, 7, std::as_writable_bytes(std::span(text)));
  ASSERT_TRUE(n);
  EXPECT_EQ(text.substr(0, *n), "789");
  EXPECT_TRUE(files->truncate(moved, 4));
  const auto listed = files->list(folder.path());
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ(listed->front().name, "b");
  EXPECT_EQ(listed->front().bytes, 4U);
  EXPECT_TRUE(files->remove(moved));
  EXPECT_GT(files->free_bytes(folder.path()).value(), 0U);
}

TEST(SystemFiles, ErrorsSayWhatAndWhere) {
  const TempFolder folder;
  const auto files = system_files();
  const auto read = files->read(folder.sub("none"), 0, {});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("none: No such file"), std::string::npos);
  EXPECT_FALSE(files->remove(folder.sub("none")));
  EXPECT_FALSE(files->list(folder.sub("none")));
  EXPECT_FALSE(files->sync_folder(folder.sub("none")));
  EXPECT_FALSE(files->make_folder("/dev/null/x"));
}

TEST(SystemFiles, ALockIsHeldOnceAndGivenBack) {
  const TempFolder folder;
  const auto files = system_files();
  {
    const auto first = files->lock(folder.sub("lock"));
    ASSERT_TRUE(first);
    const auto second = files->lock(folder.sub("lock"));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, "in_use");
  }
  EXPECT_TRUE(files->lock(folder.sub("lock")));
}

}  // namespace
}  // namespace coppice::tier
