#include "api/response_store.h"

#include <gtest/gtest.h>
#include <prometheus/gauge.h>

#include "obs/metrics.h"

namespace coppice::api {
namespace {

constexpr NamespaceId kOne{1}, kTwo{2};

struct Store : ResponseStore {
  explicit Store(std::size_t count_max = 100, std::size_t bytes_max = 1 << 20)
      : ResponseStore(count_max, bytes_max, metrics) {}

  void add(const std::string& id, NamespaceId ns = kOne, std::size_t bytes = 10, const std::string& after = "") {
    StoredResponse response;
    response.id = id;
    response.ns = ns;
    response.response = "{}";
    if (const auto previous = find(ns, after)) response.turns = previous->turns;
    put(std::move(response), {std::string(bytes, 'i'), "o of " + id});
  }

  static inline obs::Metrics metrics;
};

TEST(ResponseStore, FindsInTheOwnNamespaceOnly) {
  Store store;
  store.add("a");
  ASSERT_TRUE(store.find(kOne, "a"));
  EXPECT_EQ(store.find(kOne, "a")->turns.back()->output, "o of a");
  EXPECT_FALSE(store.find(kTwo, "a"));
  EXPECT_FALSE(store.find(kOne, "b"));
  EXPECT_FALSE(store.erase(kTwo, "a"));
  EXPECT_TRUE(store.erase(kOne, "a"));
  EXPECT_FALSE(store.erase(kOne, "a"));
  EXPECT_FALSE(store.find(kOne, "a"));
  EXPECT_EQ(store.bytes(), 0U);
}

TEST(ResponseStore, TheOneUnusedForLongestGoesFirst) {
  Store store(2);
  store.add("a");
  store.add("b");
  store.find(kOne, "a");
  store.add("c");
  EXPECT_TRUE(store.find(kOne, "a"));
  EXPECT_FALSE(store.find(kOne, "b"));
  EXPECT_TRUE(store.find(kOne, "c"));
  EXPECT_EQ(store.count(), 2U);
}

TEST(ResponseStore, BytesAreBounded) {
  Store store(1000, 10'000);
  for (int i = 0; i < 100; ++i) {
    store.add(std::to_string(i), kOne, 1000);
    EXPECT_LE(store.bytes(), 10'000U);
  }
  EXPECT_GT(store.count(), 5U);
  EXPECT_TRUE(store.find(kOne, "99"));
  store.add("huge", kOne, 20'000);
  EXPECT_FALSE(store.find(kOne, "huge"));
  EXPECT_TRUE(store.find(kOne, "99")) << "nothing can make room for it, so nothing has to go";
}

TEST(ResponseStore, AConversationTakesItsTurnsOnce) {
  Store store(1000, 1 << 20);
  store.add("0", kOne, 1000);
  for (int i = 1; i < 100; ++i) store.add(std::to_string(i), kOne, 1000, std::to_string(i - 1));
  EXPECT_EQ(store.find(kOne, "99")->turns.size(), 100U);
  EXPECT_LT(store.bytes(), 300'000U) << "100 turns of 1,000 bytes, not 5,000";
}

TEST(ResponseStore, TurnsLiveAsLongAsAResponseNeedsThem) {
  Store store;
  store.add("a", kOne, 1000);
  store.add("b", kOne, 1000, "a");
  store.erase(kOne, "a");
  const auto b = store.find(kOne, "b");
  ASSERT_EQ(b->turns.size(), 2U);
  EXPECT_EQ(b->turns.front()->output, "o of a");
  store.erase(kOne, "b");
  EXPECT_GT(store.bytes(), 2000U) << "in use is not free";
}

TEST(ResponseStore, WhatIsInUseOutlivesTheStore) {
  std::shared_ptr<const StoredResponse> a;
  {
    Store store;
    store.add("a");
    a = store.find(kOne, "a");
  }
  EXPECT_EQ(a->turns.back()->output, "o of a");
}

TEST(ResponseStore, SaysHowFullItIs) {
  Store store;
  store.add("a");
  EXPECT_EQ(Store::metrics.responses_stored.Value(), 1);
  EXPECT_EQ(Store::metrics.responses_stored_bytes.Value(), static_cast<double>(store.bytes()));
  store.erase(kOne, "a");
  EXPECT_EQ(Store::metrics.responses_stored_bytes.Value(), 0);
}

}  // namespace
}  // namespace coppice::api
