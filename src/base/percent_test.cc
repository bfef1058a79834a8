#include "base/percent.h"

#include <gtest/gtest.h>

namespace coppice {
namespace {

TEST(Percent, DecodesBytes) {
  EXPECT_EQ(decode_percent(""), "");
  EXPECT_EQ(decode_percent("a+b/c"), "a+b/c");
  EXPECT_EQ(decode_percent("%41%2f%2F%e2%82%AC"), "A//\xE2\x82\xAC");
  EXPECT_EQ(decode_percent("100%25"), "100%");
  EXPECT_EQ(decode_percent("%00"), std::string(1, '\0'));
}

TEST(Percent, RefusesBrokenEscapes) {
  for (const char* text : {"%", "%4", "a%4", "%zz", "%4g", "%g4", "%%41", "%-1"}) {
    EXPECT_EQ(decode_percent(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace coppice
