#include "net/http_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace coppice::net {
namespace {

TEST(ParseTarget, SplitsPathAndQueryAndDecodesThePathOnly) {
  const auto target = parse_target("/a%20b/%E2%82%AC+c?x=%41&y=?");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/a b/\xE2\x82\xAC+c");
  EXPECT_EQ(target->query, "x=%41&y=?");
}

TEST(ParseTarget, TakesAbsoluteFormAndAsterisk) {
  EXPECT_EQ(parse_target("http://host:80/v1/models?x=1")->path, "/v1/models");
  EXPECT_EQ(parse_target("http://host:80/v1/models?x=1")->query, "x=1");
  EXPECT_EQ(parse_target("http://host")->path, "/");
  EXPECT_EQ(parse_target("http://host?x=/")->path, "/");
  EXPECT_EQ(parse_target("http://host?x=/")->query, "x=/");
  EXPECT_EQ(parse_target("*")->path, "*");
}

TEST(ParseTarget, RefusesOtherFormsAndBadEscapes) {
  for (const char* bad : {"", "v1/models", "host:443", "/%", "/%4", "/%zz", "/%4g", "/a%00b", "/%%41"}) {
    EXPECT_FALSE(parse_target(bad)) << bad;
  }
}

RC_GTEST_PROP(PercentDecode, UndoesEncodingOfEveryByte, (const std::string& text)) {
  RC_PRE(text.find('\0') == std::string::npos);
  constexpr std::string_view kDigits = "0123456789aBcDeF";
  std::string encoded;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kDigits[byte / 16], kDigits[byte % 16]};
  }
  RC_ASSERT(percent_decode(encoded).value() == text);
}

TEST(EncodeResponse, HasLengthAndConnection) {
  EXPECT_EQ(
      encode_response({.status = 404, .content_type = "a/b", .headers = {{"X-Y", "z"}}, .body = "gone"}, true, false),
      "HTTP/1.1 404 Not Found\r\nContent-Type: a/b\r\nX-Y: z\r\nContent-Length: 4\r\nConnection: keep-alive\r\n\r\n"
      "gone");
}

TEST(EncodeResponse, ForHeadKeepsTheLengthWithoutTheBody) {
  const auto text =
      encode_response({.status = 200, .content_type = "a/b", .headers = {}, .body = "1234567"}, false, true);
  EXPECT_TRUE(text.ends_with("Content-Length: 7\r\nConnection: close\r\n\r\n")) << text;
}

TEST(EncodeResponse, NoContentHasNeitherBodyNorLength) {
  EXPECT_EQ(encode_response({.status = 204, .content_type = "a/b", .headers = {}, .body = "x"}, true, false),
            "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
}

TEST(EncodeResponse, ValueWithLineBreakCannotAddHeaders) {
  const auto text = encode_response(
      {.status = 200, .content_type = "a/b", .headers = {{"X", "1\r\nEvil: 2"}}, .body = ""}, true, false);
  EXPECT_EQ(text.find("\r\nEvil"), std::string::npos);
}

TEST(AppendChunk, WritesTheSizeInHexadecimal) {
  std::string out;
  append_chunk(out, std::string(26, 'x'));
  EXPECT_EQ(out, "1a\r\n" + std::string(26, 'x') + "\r\n");
}

}  // namespace
}  // namespace coppice::net
