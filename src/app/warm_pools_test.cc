#include "app/warm_pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "api/fakes.h"

namespace coppice::app {
namespace {

using testing::HasSubstr;

// A file that is gone with the test.
class PoolFile {
 public:
  explicit PoolFile(const std::string& text) : path_(testing::TempDir() + "pools_" + name() + ".json") {
    std::ofstream(path_) << text;
  }
  ~PoolFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  static std::string name() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }
  std::string path_;
};

std::string refusal(const std::string& text) {
  const PoolFile file(text);
  const auto pools = load_pool_file(file.path());
  EXPECT_FALSE(pools.has_value()) << text;
  return pools ? "" : pools.error().message;
}

std::vector<api::PoolFields> read(api::FakeServer& server, const std::string& text) {
  const PoolFile file(text);
  auto bodies = load_pool_file(file.path());
  EXPECT_TRUE(bodies.has_value());
  auto pools = api::read_pools(*bodies, server.context().services);
  EXPECT_TRUE(pools.has_value());
  return *std::move(pools);
}

constexpr const char* kTwo =
    R"([{"name":"base","prompt":"ab","ttl":5},{"name":"other","tokens":[1,2,3],"cache_salt":"s"}])";

std::size_t count(const std::string& text) { return load_pool_file(PoolFile(text).path())->size(); }

TEST(WarmPools, OneObjectOrAList) {
  EXPECT_EQ(count(R"({"name":"base","prompt":"ab"})"), 1U);
  EXPECT_EQ(count(kTwo), 2U);
  EXPECT_EQ(count("[]"), 0U);
}

TEST(WarmPools, FilesThatCannotBeUsedAreNamed) {
  const auto missing = load_pool_file("/nonexistent/pools.json");
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, HasSubstr("--pool /nonexistent/pools.json: No such file"));
  EXPECT_THAT(load_pool_file(testing::TempDir()).error().message, HasSubstr("folder"));
  EXPECT_THAT(refusal(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\n  \"name\" 5}"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("7"), HasSubstr("pools[0]: must be a JSON object, not number"));
  EXPECT_THAT(refusal(R"([{"name":"a","prompt":"x"}, "b"])"), HasSubstr("pools[1]: must be a JSON object, not string"));
}

TEST(WarmPools, A12_EachIsComputedAfterTheOneBefore) {
  api::FakeServer server;
  ASSERT_TRUE(start_warm_pools(server.context(), read(server, kTwo)).has_value());
  auto& requests = server.engine.requests;
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].make_pool->name, "base");
  EXPECT_EQ(requests[0].make_pool->ttl, std::chrono::seconds(5));
  EXPECT_EQ(*requests[0].prompt, (Tokens{256, 'a', 'b'}));
  EXPECT_EQ(requests[0].n_predict, 0);
  EXPECT_TRUE(requests[0].placement.cache_prompt);
  EXPECT_EQ(requests[0].placement.ns, NamespaceId{});
  ASSERT_NE(requests[0].sampler, nullptr);

  server.engine.finish(0);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].make_pool->name, "other");
  EXPECT_EQ(*requests[1].prompt, (Tokens{1, 2, 3}));
  EXPECT_EQ(requests[1].placement.ns, server.context().keyring.namespace_of("", "s"));
  EXPECT_NE(requests[0].id, requests[1].id);
  server.engine.finish(1);
  EXPECT_EQ(requests.size(), 2U);
}

TEST(WarmPools, B24_EveryApiKeyGetsItsOwn) {
  api::FakeServer server;
  server.api_keys = {"k1", "k2"};
  ASSERT_TRUE(start_warm_pools(server.context(), read(server, R"({"name":"base","prompt":"ab"})")).has_value());
  server.engine.finish(0);
  server.engine.finish(1);
  const auto& requests = server.engine.requests;
  ASSERT_EQ(requests.size(), 2U);
  const auto& keyring = server.context().keyring;
  EXPECT_EQ(requests[0].placement.ns, keyring.namespace_of("k1", ""));
  EXPECT_EQ(requests[1].placement.ns, keyring.namespace_of("k2", ""));
}

TEST(WarmPools, AFailureDoesNotKeepBackTheNext) {
  api::FakeServer server;
  ASSERT_TRUE(start_warm_pools(server.context(), read(server, kTwo)).has_value());
  server.engine.requests[0].sink->on_failed({ErrorKind::invalid_request, "does not fit", "name"});
  ASSERT_EQ(server.engine.requests.size(), 2U);
  EXPECT_EQ(server.engine.requests[1].make_pool->name, "other");

  api::FakeServer refusing;
  refusing.engine.errors[0] = {ErrorKind::overloaded, "queue full", ""};
  ASSERT_TRUE(start_warm_pools(refusing.context(), read(refusing, kTwo)).has_value());
  EXPECT_TRUE(refusing.engine.requests.empty());  // both were refused, and it came to an end
}

TEST(WarmPools, TheEnginesEndIsTheirs) {
  api::FakeServer server;
  ASSERT_TRUE(start_warm_pools(server.context(), read(server, kTwo)).has_value());
  server.engine.requests[0].sink->on_failed({ErrorKind::unavailable, "the server is shutting down", ""});
  EXPECT_EQ(server.engine.requests.size(), 1U);
}

TEST(WarmPools, WithoutPoolsNothingHappens) {
  api::FakeServer server;
  EXPECT_TRUE(start_warm_pools(server.context(), {}).has_value());
  EXPECT_TRUE(server.engine.requests.empty());
}

}  // namespace
}  // namespace coppice::app
