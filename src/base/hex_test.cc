#include "base/hex.h"

#include <gtest/gtest.h>

namespace coppice {
namespace {

TEST(ToHex, WritesBytesAndNumbersInFull) {
  EXPECT_EQ(to_hex(std::span<const unsigned char>()), "");
  EXPECT_EQ(to_hex(std::array<unsigned char, 4>{0x00, 0x0f, 0xa5, 0xff}), "000fa5ff");
  EXPECT_EQ(to_hex(std::uint64_t{0}), "0000000000000000");
  EXPECT_EQ(to_hex(std::uint64_t{0x0123456789abcdef}), "0123456789abcdef");
}

}  // namespace
}  // namespace coppice
