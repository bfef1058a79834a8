#include "api/auth.h"

#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

HttpRequest with_header(const char* name, const char* value) { return {.method = "GET", .headers = {{name, value}}}; }

TEST(Keyring, WithoutKeysEverybodyMayAskAndIsTheSame) {
  const Keyring keyring({});
  EXPECT_EQ(keyring.authorize({}), "");
  EXPECT_EQ(keyring.authorize(with_header("authorization", "Bearer anything")), "");
  EXPECT_EQ(keyring.authorize(with_header("x-api-key", "anything")), "");
}

TEST(Keyring, TakesEitherHeader) {
  const Keyring keyring({"one", "two words"});
  EXPECT_EQ(keyring.authorize(with_header("authorization", "Bearer one")), "one");
  EXPECT_EQ(keyring.authorize(with_header("authorization", "bearer  one")), "one");
  EXPECT_EQ(keyring.authorize(with_header("authorization", "Bearer two words")), "two words");
  EXPECT_EQ(keyring.authorize(with_header("x-api-key", "one")), "one");
}

TEST(Keyring, RefusesOthers) {
  const Keyring keyring({"one"});
  const HttpRequest wrong[] = {{},
                               with_header("authorization", "Bearer on"),
                               with_header("authorization", "Bearer onee"),
                               with_header("authorization", "Bearer "),
                               with_header("authorization", "one"),
                               with_header("authorization", "Basic one"),
                               with_header("x-api-key", ""),
                               with_header("x-api-key", "ONE")};
  for (const HttpRequest& request : wrong) {
    auto key = keyring.authorize(request);
    ASSERT_FALSE(key);
    EXPECT_EQ(key.error().kind, ErrorKind::unauthorized);
  }
}

TEST(Keyring, NamespacesFollowKeyAndSalt) {
  const Keyring keyring({});
  EXPECT_EQ(keyring.namespace_of("", "").value, 0U);
  EXPECT_EQ(keyring.namespace_of("ab", "c"), keyring.namespace_of("ab", "c"));
  EXPECT_NE(keyring.namespace_of("ab", "c"), keyring.namespace_of("a", "bc"));
  EXPECT_NE(keyring.namespace_of("a", ""), keyring.namespace_of("", "a"));
  EXPECT_NE(keyring.namespace_of("a", "").value, 0U);
  // Another process has another secret, so hashes cannot be prepared.
  EXPECT_NE(keyring.namespace_of("a", ""), Keyring({}).namespace_of("a", ""));
}

TEST(Auth, AllButHealthNeedTheKey) {
  FakeServer server;
  server.api_keys = {"secret"};
  EXPECT_EQ(server.get("/health")->response.status, 200);
  EXPECT_EQ(server.get("/v1/health")->response.status, 200);
  for (const char* path : {"/v1/models", "/models", "/props", "/slots", "/metrics", "/no/such/route"}) {
    auto answer = server.get(path);
    EXPECT_EQ(answer->response.status, 401) << path;
    EXPECT_EQ(answer->json()["error"]["type"], "authentication_error") << path;
    EXPECT_EQ(answer->json()["error"]["code"], "invalid_api_key") << path;
  }
  for (const char* path : {"/tokenize", "/detokenize", "/apply-template", "/completion", "/completions",
                           "/v1/completions", "/v1/chat/completions", "/chat/completions"}) {
    EXPECT_EQ(server.post(path, "{}")->response.status, 401) << path;
    EXPECT_NE(server.post(path, "{}", {{"x-api-key", "secret"}})->response.status, 401) << path;
  }
}

TEST(Auth, RequestsOfTwoKeysOrSaltsAreInDifferentNamespaces) {
  FakeServer server;
  server.api_keys = {"k1", "k2"};
  const auto ns_of = [&](const char* key, const char* body) {
    server.post("/completion", body, {{"authorization", std::string("Bearer ") + key}});
    return server.engine.requests.back().placement.ns;
  };
  const auto plain = ns_of("k1", R"({"prompt":"x"})");
  EXPECT_EQ(ns_of("k1", R"({"prompt":"y"})"), plain);
  EXPECT_NE(ns_of("k2", R"({"prompt":"x"})"), plain);
  EXPECT_NE(ns_of("k1", R"({"prompt":"x","cache_salt":"s"})"), plain);
}

}  // namespace
}  // namespace coppice::api
