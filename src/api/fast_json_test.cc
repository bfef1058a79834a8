#include "api/fast_json.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"

namespace coppice::api {
namespace {

constexpr FastJsonLimits kWide{.depth_max = 256, .key_comparisons_max = 1 << 20};

std::optional<Json> parse_slowly(const std::string& text) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

// Alike to the last bit: kinds of numbers and the order of keys included.
std::string described(const Json& value) {
  std::string out = std::string(value.type_name()) + (value.is_number_unsigned() ? "u"
                                                      : value.is_number_float()  ? "f"
                                                                                 : "");
  if (!value.is_structured()) return out + value.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (const auto& [key, item] : value.items()) out.append(" ").append(key).append("=").append(described(item));
  return out + ";";
}

// What it takes, the other parser takes too, and as the same. The other way round it may give up.
void expect_alike(const std::string& text) {
  const auto fast = parse_fast(text, kWide);
  if (!fast) return;
  const auto slow = parse_slowly(text);
  ASSERT_TRUE(slow) << text;
  EXPECT_EQ(described(*fast), described(*slow)) << text;
}

TEST(FastJson, GivesTheValuesOfTheOtherParser) {
  for (
      const std::string text :
      {R"({"b":1,"a":[-1,0,1.0,1e3,-0.0,0.1,5e-324,1.7976931348623157e308,18446744073709551615,-9223372036854775808],"b":2})",
       R"({"text":"\u00e9\ud83c\udf31\n\"\\\/","empty":{},"list":[[],[{}]],"yes":true,"no":false,"none":null})",
       R"([1,2,3])", R"("text")", "7", " {\t\"a\" :\r\n1 } "}) {
    const auto fast = parse_fast(text, kWide);
    ASSERT_TRUE(fast) << text;
    EXPECT_EQ(described(*fast), described(*parse_slowly(text)));
  }
}

TEST(FastJson, TakesNothingThatTheOtherParserRefuses) {
  for (const std::string text : {"",
                                 " ",
                                 "{",
                                 "{}x",
                                 "[1,]",
                                 "[1 2]",
                                 "{\"a\"}",
                                 "{\"a\":1,}",
                                 "tru",
                                 "nul",
                                 "01",
                                 "1.",
                                 "-",
                                 "+1",
                                 ".5",
                                 "1e",
                                 "NaN",
                                 "'a'",
                                 "\"a",
                                 "\"\x01\"",
                                 "\"\xff\"",
                                 "\"\xc3\"",
                                 "\"\xed\xa0\x80\"",
                                 R"("\ud800")",
                                 R"("\udc00")",
                                 R"("\ud800\u0041")",
                                 R"("\udc00\ud800")",
                                 R"("\x41")",
                                 R"("\u12g4")",
                                 "1e400",
                                 "-1e400",
                                 "[1]]",
                                 "/* */1"}) {
    EXPECT_FALSE(parse_slowly(text)) << text;
    EXPECT_FALSE(parse_fast(text, kWide)) << text;
  }
  EXPECT_FALSE(parse_fast(std::string("1\0", 2), kWide));
  EXPECT_FALSE(parse_fast("\xef\xbb\xbf{}", kWide)) << "left to the other parser, which skips the mark";
  EXPECT_FALSE(parse_fast("18446744073709551616", kWide)) << "left to the other parser, which makes it a double";
}

TEST(FastJson, LimitsHold) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_fast(nested(3), {.depth_max = 3, .key_comparisons_max = 0}));
  EXPECT_FALSE(parse_fast(nested(4), {.depth_max = 3, .key_comparisons_max = 0}));
  EXPECT_TRUE(parse_fast(nested(256), kWide));
  EXPECT_FALSE(parse_fast(nested(257), kWide));
  EXPECT_FALSE(parse_fast(std::string(100'000, '['), kWide));
  const std::string keys = R"({"a":{"c":1,"d":2},"b":3})";  // 1 + 2 comparisons in each of the two objects
  EXPECT_TRUE(parse_fast(keys, {.depth_max = 2, .key_comparisons_max = 6}));
  EXPECT_FALSE(parse_fast(keys, {.depth_max = 2, .key_comparisons_max = 5}));
}

// Sequences of JSON's own pieces, most of them broken.
RC_GTEST_PROP(FastJson, AgreesOnWhateverIsMadeOfPieces, ()) {
  const std::vector<std::string> pieces = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           ",",
                                           ":",
                                           "\"a\"",
                                           "\"\\u00e9\"",
                                           "\"\\ud83c\\udf31\"",
                                           "1",
                                           "-1",
                                           "0.5",
                                           "1e2",
                                           "true",
                                           "false",
                                           "null",
                                           "\"",
                                           "\\",
                                           "\n",
                                           "-",
                                           "\"\xc3\xa9\"",
                                           "\xff",
                                           "\"b\":",
                                           "\"a\":",
                                           "\\udc00",
                                           "18446744073709551616"};
  std::string text;
  for (const std::string& piece : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces)))
    text += piece;
  expect_alike(text);
}

// Valid text, cut and changed in one place.
RC_GTEST_PROP(FastJson, AgreesOnDamagedText, (std::string content, std::int64_t number, double real)) {
  Json value = {{"text", content}, {"numbers", {number, real, 0}}, {"inner", {{"list", {nullptr, true, content}}}}};
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  expect_alike(text);
  const auto at = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(text.size())));
  std::string damaged = text;
  damaged[at] = *rc::gen::arbitrary<char>();
  expect_alike(damaged);
  expect_alike(text.substr(0, at));
}

}  // namespace
}  // namespace coppice::api
