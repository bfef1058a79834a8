#include "base/utf8.h"

#include <gtest/gtest.h>

namespace coppice {
namespace {

TEST(Utf8, TailOfAWholeStringIsNothing) {
  for (const char* text : {"", "a", "é", "€", "😀", "a😀b"}) EXPECT_EQ(incomplete_utf8_tail(text), 0U) << text;
}

TEST(Utf8, BeginningsAreHeldBack) {
  const std::string_view smile = "😀";
  for (std::size_t n = 1; n < smile.size(); ++n) {
    EXPECT_EQ(incomplete_utf8_tail(std::string("ab") + std::string(smile.substr(0, n))), n);
  }
  EXPECT_EQ(incomplete_utf8_tail("\xC3"), 1U);
}

TEST(Utf8, BytesThatCanNeverBeValidAreNotHeld) {
  for (const char* text : {"\x80", "\xBF\xBF\xBF\xBF", "\xFF", "\xC0", "a\xF8"}) {
    EXPECT_EQ(incomplete_utf8_tail(text), 0U) << text;
  }
}

}  // namespace
}  // namespace coppice
