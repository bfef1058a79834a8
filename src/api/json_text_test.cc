#include "api/json_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/json.h"

namespace coppice::api {
namespace {

std::string nested(int depth) {  // an object with `depth` levels, itself included
  return "{\"a\":" + std::string(static_cast<std::size_t>(depth - 1), '[') +
         std::string(static_cast<std::size_t>(depth - 1), ']') + "}";
}

TEST(ParseBody, KeepsKeyOrderAndTakesTheLastOfDuplicates) {
  auto body = parse_body(R"({"b":1,"a":2,"b":3})");
  ASSERT_TRUE(body);
  EXPECT_EQ(to_text(*body), R"({"b":3,"a":2})");
}

TEST(ParseBody, RefusesWhatIsNoJsonObject) {
  struct Case {
    std::string body, message_part;
  };
  const Case cases[] = {
      {"", "is empty"},
      {"{", "line 1, column 2"},
      {"{\n\"a\": tru}", "line 2, column 9"},
      {"{} x", "not valid JSON"},
      {"[1]", "must be a JSON object, not array"},
      {"\"text\"", "not string"},
      {"null", "not null"},
      {"{\"a\":1e400}", "1e400"},
      {"{\"a\":NaN}", "not valid JSON"},
      {"{\"a\":\"\xff\"}", "not valid JSON"},
      {"{\"a\":\"\xc3\"}", "not valid JSON"},
      {"{\"a\":\"\xed\xa0\x80\"}", "not valid JSON"},  // a surrogate
      {"{\"a\":\"\\ud800\"}", "not valid JSON"},
      {"{\"\xff\":1}", "not valid JSON"},
      {std::string("{\"a\":\0}", 7), "not valid JSON"},
      {"{'a':1}", "not valid JSON"},
  };
  for (const Case& c : cases) {
    auto body = parse_body(c.body);
    ASSERT_FALSE(body) << c.body;
    EXPECT_EQ(body.error().kind, ErrorKind::invalid_request);
    EXPECT_NE(body.error().message.find(c.message_part), std::string::npos) << body.error().message;
    EXPECT_EQ(body.error().message.find("[json"), std::string::npos) << body.error().message;
  }
}

TEST(ParseBody, DepthIsBounded) {
  EXPECT_TRUE(parse_body(nested(kJsonDepthMax)));
  auto deep = parse_body(nested(kJsonDepthMax + 1));
  ASSERT_FALSE(deep);
  EXPECT_NE(deep.error().message.find("deeper than 256"), std::string::npos);
  // Brackets in strings are text, also behind escapes.
  EXPECT_TRUE(parse_body("{\"a\":\"\\\"" + std::string(1000, '[') + "\"}"));
  EXPECT_FALSE(parse_body(std::string(1000000, '[')));
}

TEST(ParseBody, ObjectsWithVeryManyKeysAreRefused) {
  const auto with_keys = [](int n) {
    std::string body = "{";
    for (int i = 0; i < n; ++i) body += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
    return body + "}";
  };
  EXPECT_TRUE(parse_body(with_keys(2000)));
  auto many = parse_body(with_keys(100000));
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message.find("too many keys"), std::string::npos);
}

TEST(ToText, NeverFails) {
  EXPECT_EQ(to_text({{"a", "x\xffy"}}), "{\"a\":\"x\xEF\xBF\xBDy\"}");
  EXPECT_EQ(to_text({{"a", std::numeric_limits<double>::infinity()}}), "{\"a\":null}");
  EXPECT_EQ(to_sse({{"a", "line\nbreak"}}), "data: {\"a\":\"line\\nbreak\"}\n\n");
}

TEST(IsUtf8, WholeCharactersOnly) {
  for (const char* good :
       {"", "a", "\xc3\xa1", "\xe2\x82\xac", "\xf0\x9f\x8c\xb1", "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc3", "a\xe2\x82", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3\x28"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

}  // namespace
}  // namespace coppice::api
