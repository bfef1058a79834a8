#include "base/byte_buffers.h"

#include <gtest/gtest.h>

#include <thread>

namespace coppice {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(ByteBuffers, ABufferIsUsedAgainForOneOfAboutItsSize) {
  auto first = take_buffer(4 * kMiB);
  EXPECT_EQ(first.size(), 4 * kMiB);
  const std::byte* where = first.data();
  give_buffer(std::move(first));
  auto again = take_buffer(4 * kMiB - 100);
  EXPECT_EQ(again.data(), where);
  EXPECT_EQ(again.size(), 4 * kMiB - 100);
  EXPECT_NE(take_buffer(4 * kMiB).data(), where);  // that one is taken
  give_buffer(std::move(again));
  EXPECT_NE(take_buffer(2 * kMiB).data(), where);  // half of it would be wasted
  EXPECT_EQ(take_buffer(4 * kMiB).data(), where);
}

TEST(ByteBuffers, SmallOnesAreNotKept) {
  give_buffer(std::vector<std::byte>(4 * kMiB));
  give_buffer(std::vector<std::byte>(10));
  EXPECT_EQ(take_buffer(10).size(), 10U);
  EXPECT_EQ(take_buffer(0).size(), 0U);
  EXPECT_GE(take_buffer(4 * kMiB).capacity(), 4 * kMiB);
}

TEST(ByteBuffers, TwoThreadsNeverHaveTheSame) {
  const auto use = [](std::byte mark) {
    for (int i = 0; i < 200; ++i) {
      auto bytes = take_buffer(kMiB);
      bytes.front() = bytes.back() = mark;
      std::this_thread::yield();
      ASSERT_EQ(bytes.front(), mark);
      ASSERT_EQ(bytes.back(), mark);
      give_buffer(std::move(bytes));
    }
  };
  std::thread other(use, std::byte{1});
  use(std::byte{2});
  other.join();
}

}  // namespace
}  // namespace coppice
