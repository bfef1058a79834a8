// POST /v1/sessions/{id}/warm (spec B25).
#include "api/warm_routes.h"

#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

struct Warm : testing::Test {
  FakeServer server;
  std::vector<sched::Request>& requests() { return server.engine.requests; }
  sched::Explanation& found() { return server.engine.inspector.explanation; }
  auto warm(const std::string& session, const std::string& body) {
    return server.post("/v1/sessions/" + session + "/warm", body);
  }
};

TEST_F(Warm, B25_TheExpectedRequestsPromptIsHandedToTheEngineAsBackgroundWork) {
  found() = {.prompt_tokens = 50, .reused = 30, .computed = 20};
  auto answer = warm("a/b", R"({"messages":[{"role":"user","content":"hi"}],"session_id":"other"})");
  EXPECT_EQ(answer->response.status, 202) << answer->response.body;
  EXPECT_EQ(answer->response.body, R"({"session":"a/b","tokens":50,"held":30,"to_compute":20})");
  ASSERT_EQ(requests().size(), 1U);
  EXPECT_TRUE(requests()[0].background);
  EXPECT_EQ(requests()[0].n_predict, 0);
  EXPECT_EQ(requests()[0].placement.session, "a/b");

  auto asked = server.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}]})");
  ASSERT_EQ(requests().size(), 2U);
  EXPECT_EQ(*requests()[0].prompt, *requests()[1].prompt) << "what the request itself will be";
  EXPECT_EQ(requests()[0].placement.ns, requests()[1].placement.ns);
}

TEST_F(Warm, WhatIsHeldNeedsNothing) {
  found() = {.prompt_tokens = 50, .reused = 49, .computed = 1};
  EXPECT_EQ(warm("a", R"({"prompt":"hi"})")->response.body, R"({"session":"a","tokens":50,"held":50,"to_compute":0})");
}

TEST_F(Warm, TakesTheBodiesOfAllApis) {
  EXPECT_EQ(warm("a", R"({"prompt":[1,2,3]})")->response.status, 202);
  EXPECT_EQ(warm("a", R"({"input":"hi"})")->response.status, 202);
  EXPECT_EQ(warm("a", R"({"messages":[{"role":"system","content":"You are terse."}]})")->response.status, 202);
  EXPECT_EQ(*requests()[0].prompt, (Tokens{1, 2, 3}));
  EXPECT_EQ(requests().size(), 3U);
}

TEST_F(Warm, BadInputIsAnswered) {
  EXPECT_EQ(warm("a", "{")->response.status, 400);
  EXPECT_EQ(warm("a", "{}")->response.status, 400);
  EXPECT_EQ(warm("a", R"({"messages":[{"role":"system","content":"x"}],"cache_salt":1})")->response.status, 400);
  EXPECT_EQ(warm("a", R"({"prompt":["one","two"]})")->json()["error"]["param"], "prompt");
  EXPECT_EQ(warm(std::string(257, 's'), R"({"prompt":"hi"})")->json()["error"]["param"], "session_id");
  EXPECT_EQ(server.get("/v1/sessions/a/warm")->response.status, 404) << "a session of that name";
  EXPECT_EQ(server.post("/v1/sessions/a", "{}")->response.status, 405);
  EXPECT_EQ(server.post("/v1/sessions//warm", "{}")->response.status, 405) << "no name";
  EXPECT_TRUE(requests().empty());
}

TEST_F(Warm, AnEngineThatTakesNothingMoreSaysSo) {
  server.engine.errors[0] = {ErrorKind::unavailable, "shutting down", {}};
  EXPECT_EQ(warm("a", R"({"prompt":"hi"})")->response.status, 503);
}

TEST_F(Warm, B24_KeysAndSaltsWarmTheirOwn) {
  server.api_keys = {"k1", "k2"};
  const auto ns_of = [&](const char* key, const std::string& body) {
    server.request({.method = "POST", .path = "/v1/sessions/a/warm", .headers = {{"x-api-key", key}}, .body = body});
    return requests().back().placement.ns;
  };
  const auto& keyring = server.context().keyring;
  EXPECT_EQ(ns_of("k1", R"({"prompt":"hi","cache_salt":"x"})"), keyring.namespace_of("k1", "x"));
  EXPECT_EQ(ns_of("k2", R"({"messages":[{"role":"system","content":"s"}],"cache_salt":"x"})"),
            keyring.namespace_of("k2", "x"));
}

}  // namespace
}  // namespace coppice::api
