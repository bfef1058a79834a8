// The file of --pool.
#include "api/pool_fields.h"

#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

Result<std::vector<PoolFields>> read_pools(const std::string& text) {
  FakeServer server;
  auto pools = parse_pool_file(text);
  if (!pools) return std::unexpected(pools.error());
  return read_pools(*pools, server.context().services);
}

std::string refusal(const std::string& text) {
  const auto pools = read_pools(text);
  return pools ? "accepted" : pools.error().message;
}

TEST(PoolFile, OneOrAList) {
  EXPECT_EQ(read_pools("[]")->size(), 0U);
  const auto one = read_pools(R"({"name":"a","prompt":"x"})");
  ASSERT_EQ(one->size(), 1U);
  EXPECT_EQ(one->front().spec.name, "a");
  const auto two = read_pools(R"([{"name":"a","tokens":[5],"ttl":2},{"name":"b","prompt":"x","cache_salt":"s"}])");
  ASSERT_EQ(two->size(), 2U);
  EXPECT_EQ(two->front().tokens, Tokens{5});
  EXPECT_EQ(two->front().spec.ttl, std::chrono::seconds(2));
  EXPECT_EQ(two->back().cache_salt, "s");
}

TEST(PoolFile, ErrorsNameTheEntryAndTheField) {
  EXPECT_EQ(refusal(R"([{"name":"a","prompt":"x"},{"name":"b","prompt":"x","ttl":"1h"}])"),
            "pools[1]: 'ttl' must be a number from 0 to 1000000000");
  EXPECT_EQ(refusal(R"({"prompt":"x"})"), "pools[0]: 'name' is missing: a pool needs one");
  EXPECT_EQ(refusal("[5]"), "pools[0]: must be a JSON object, not number");
  EXPECT_EQ(refusal("true"), "pools[0]: must be a JSON object, not boolean");
  EXPECT_NE(refusal("{").find("the file is not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("").find("the file is not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(std::string(300, '[')).find("the file is nested deeper"), std::string::npos);
}

TEST(PoolFile, TwoOfANameNeedTwoSalts) {
  EXPECT_EQ(refusal(R"([{"name":"a","prompt":"x"},{"name":"a","prompt":"y"}])"),
            "pools[1]: 'name' is 'a', as that of a pool before it");
  EXPECT_EQ(read_pools(R"([{"name":"a","prompt":"x"},{"name":"a","prompt":"y","cache_salt":"s"}])")->size(), 2U);
}

}  // namespace
}  // namespace coppice::api
