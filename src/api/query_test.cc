#include "api/query.h"

#include <gtest/gtest.h>

namespace coppice::api {
namespace {

std::string text(std::string_view query) { return QueryReader(query).string("a", 100); }

TEST(Query, Strings) {
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("b=1&ab=2"), "");
  EXPECT_EQ(text("b=1&a=x"), "x");
  EXPECT_EQ(text("a=x&a=y"), "x");
  EXPECT_EQ(text("a"), "");
  EXPECT_EQ(text("a=&b"), "");
  EXPECT_EQ(text("&&a=b=c&"), "b=c");
  EXPECT_EQ(text("a=%26%3D+%2B%C3%A9"), "&= +\xC3\xA9");
}

TEST(Query, WrongStringsAreErrorsThatNameThem) {
  for (const char* query : {"a=%", "a=%4", "a=%zz", "a=12345"}) {
    QueryReader in(query);
    EXPECT_EQ(in.string("a", 4), "");
    ASSERT_TRUE(in.error()) << query;
    EXPECT_EQ(in.error()->kind, ErrorKind::invalid_request);
    EXPECT_EQ(in.error()->param, "a");
  }
  QueryReader fits("a=1234&b=%");  // what nobody asks for is not looked at
  EXPECT_EQ(fits.string("a", 4), "1234");
  EXPECT_FALSE(fits.error());
}

TEST(Query, Integers) {
  const auto number = [](std::string_view query) {
    QueryReader in(query);
    const auto found = in.integer("n", 1, 1000, 7);
    return in.error() ? -1 : found;
  };
  EXPECT_EQ(number(""), 7);
  EXPECT_EQ(number("n=1"), 1);
  EXPECT_EQ(number("n=1000"), 1000);
  EXPECT_EQ(number("n=%31"), 1);
  for (const char* query :
       {"n=0", "n=1001", "n=-1", "n=", "n", "n=x", "n=1x", "n=1.0", "n=+1", "n=1e2", "n=99999999999999999999", "n=%"}) {
    EXPECT_EQ(number(query), -1) << query;
  }
}

TEST(Query, Flags) {
  for (const char* query : {"f=1", "f=x", "a&f=true"}) EXPECT_TRUE(QueryReader(query).flag("f")) << query;
  for (const char* query : {"", "f", "f=", "f=0", "ff=1"}) EXPECT_FALSE(QueryReader(query).flag("f")) << query;
}

TEST(Query, TheFirstErrorIsKept) {
  QueryReader in("a=x&b=y");
  in.integer("b", 0, 1, 0);
  in.integer("a", 0, 1, 0);
  EXPECT_EQ(in.error()->param, "b");
}

}  // namespace
}  // namespace coppice::api
