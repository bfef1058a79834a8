#include "app/sizes.h"

#include <gtest/gtest.h>

namespace coppice::app {
namespace {

TEST(Sizes, ReadsPlainBytesAndUnits) {
  EXPECT_EQ(parse_size("0").value(), 0U);
  EXPECT_EQ(parse_size("4194304").value(), 4194304U);
  EXPECT_EQ(parse_size("512MiB").value(), 512ULL << 20);
  EXPECT_EQ(parse_size("8GiB").value(), 8ULL << 30);
  EXPECT_EQ(parse_size("8 gib").value(), 8ULL << 30);
  EXPECT_EQ(parse_size("64M").value(), 64ULL << 20);
  EXPECT_EQ(parse_size("1.5K").value(), 1536U);
  EXPECT_EQ(parse_size("2MB").value(), 2'000'000U);
  EXPECT_EQ(parse_size("7b").value(), 7U);
}

TEST(Sizes, RefusesWhatIsNoSize) {
  for (const char* text : {"", "MiB", "-1", "-1MiB", "1XB", "1 MiB x", "nan", "inf", "0x10", "1e3", "99999999TiB"}) {
    EXPECT_FALSE(parse_size(text).has_value()) << text;
  }
}

TEST(Sizes, WholeNumbersWithinBounds) {
  EXPECT_EQ(parse_int("7", 0, 7).value(), 7);
  for (const char* text : {"8", "-1", "", "7 ", "7x", "1.0", "99999999999999999999"}) {
    EXPECT_FALSE(parse_int(text, 0, 7).has_value()) << text;
  }
}

TEST(Sizes, SpeaksInHumanUnits) {
  EXPECT_EQ(human_bytes(812), "812 B");
  EXPECT_EQ(human_bytes(1887616), "1.8 MiB");
  EXPECT_EQ(human_bytes(1ULL << 30), "1.0 GiB");
  EXPECT_EQ(human_bytes((1ULL << 20) - 1), "1.0 MiB") << "not 1024 KiB";
  EXPECT_EQ(human_count(812), "812");
  EXPECT_EQ(human_count(1'700'000), "1.7M");
  EXPECT_EQ(human_count(20'914'757'184ULL), "20.9B");
  EXPECT_EQ(with_commas(131072), "131,072");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
}

TEST(Sizes, Ages) {
  EXPECT_EQ(parse_age("90s").value(), 90U);
  EXPECT_EQ(parse_age("45m").value(), 45U * 60);
  EXPECT_EQ(parse_age("12h").value(), 12U * 3600);
  EXPECT_EQ(parse_age("30d").value(), 30U * 24 * 3600);
  EXPECT_EQ(parse_age("2w").value(), 14U * 24 * 3600);
  for (const char* wrong : {"", "h", "12", "-1h", "1.5d", "3 years", "99999999999999999999d"}) {
    EXPECT_FALSE(parse_age(wrong)) << wrong;
  }
  EXPECT_EQ(human_age(99), "99 s");
  EXPECT_EQ(human_age(5999), "99 min");
  EXPECT_EQ(human_age(6000), "1 h");
  EXPECT_EQ(human_age(47 * 3600), "47 h");
  EXPECT_EQ(human_age(49 * 3600), "2 d");
}

}  // namespace
}  // namespace coppice::app
