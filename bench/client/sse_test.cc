#include "client/sse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/url.h"

namespace coppice::bench {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> events(std::string_view bytes, std::size_t piece) {
  SseParser parser;
  std::vector<std::string> all;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    parser.feed(bytes.substr(at, piece));
    while (auto event = parser.next()) all.push_back(*event);
  }
  return all;
}

TEST(Sse, PiecesOfAnySizeGiveTheSameEvents) {
  const std::string stream =
      ": a comment\n\ndata: {\"a\":1}\n\nevent: x\r\ndata:two\r\ndata: lines\r\n\r\nid: 3\n\ndatabase: no\n\ndata: "
      "[DONE]\n\n";
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    EXPECT_THAT(events(stream, piece), ElementsAre("{\"a\":1}", "two\nlines", "[DONE]")) << piece;
  }
}

TEST(Sse, AnEventWithoutItsEmptyLineIsNotComplete) {
  EXPECT_TRUE(events("data: x\n", 1).empty());
  EXPECT_THAT(events("data\n\ndata: \n\n", 3), ElementsAre("", ""));
}

TEST(Url, TakesHostPortAndBase) {
  const auto url = parse_url("http://127.0.0.1:8080/v1/");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "127.0.0.1");
  EXPECT_EQ(url->port, "8080");
  EXPECT_EQ(url->base, "");
  EXPECT_EQ(parse_url("http://host/proxy/v1")->base, "/proxy");
  EXPECT_EQ(parse_url("http://host")->port, "80");
  EXPECT_EQ(parse_url("http://[::1]:99")->host, "::1");
  EXPECT_EQ(parse_url("http://[::1]:99")->port, "99");
}

TEST(Url, SaysWhatItCannotUse) {
  for (const char* bad : {"", "https://x", "x:80", "http://", "http://:80", "http://x:", "http://x:8a"}) {
    EXPECT_FALSE(parse_url(bad)) << bad;
  }
}

}  // namespace
}  // namespace coppice::bench
