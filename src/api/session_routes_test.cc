#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

sched::SessionInfo info(const std::string& name) {
  sched::SessionInfo session;
  session.name = name;
  session.prompt_tokens = 100;
  session.held = 90;
  session.in_host = 30;
  session.on_disk = 40;
  session.requests = 3;
  session.idle = std::chrono::milliseconds(1500);
  return session;
}

struct Sessions : testing::Test {
  FakeServer server;
  std::map<std::string, sched::SessionInfo>& here() { return server.engine.inspector.sessions_of[NamespaceId{}]; }
};

TEST_F(Sessions, OneInEachPlace) {
  here()["a"] = info("a");
  EXPECT_EQ(
      server.get("/v1/sessions/a")->response.body,
      R"({"name":"a","parent":null,"tokens":100,"held":90,"tiers":{"host":30,"disk":40},"where":null,"requests":3,"idle_s":1.5})");
  here()["a"].parent = "root";
  here()["a"].place = sched::SequencePlace{.slot = SlotId{2}, .running = true};
  EXPECT_EQ(server.get("/v1/sessions/a")->json()["parent"], "root");
  const auto where = [&] { return server.get("/v1/sessions/a")->json()["where"].dump(); };
  EXPECT_EQ(where(), R"({"kind":"slot","slot":2,"running":true})");
  here()["a"].place = sched::SequencePlace{.pool = "base"};
  EXPECT_EQ(where(), R"({"kind":"pool","pool":"base"})");
  here()["a"].place = sched::SequencePlace{};
  EXPECT_EQ(where(), R"({"kind":"parked"})");
}

TEST_F(Sessions, ListHasALimit) {
  for (int i = 0; i < 150; ++i) here()[std::to_string(i)] = info(std::to_string(i));
  const Json list = server.get("/v1/sessions")->json();
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"].size(), 100U);
  EXPECT_EQ(list["data"][0]["name"], "0");
  EXPECT_EQ(server.get("/v1/sessions", "limit=1")->json()["data"].size(), 1U);
  EXPECT_EQ(server.get("/v1/sessions", "limit=1000")->json()["data"].size(), 150U);
  for (const char* limit : {"limit=0", "limit=1001", "limit=-5", "limit=x", "limit=", "limit=%"}) {
    auto answer = server.get("/v1/sessions", limit);
    EXPECT_EQ(answer->response.status, 400) << limit;
    EXPECT_EQ(answer->json()["error"]["param"], "limit") << limit;
  }
}

TEST_F(Sessions, NamesMayHoldAnything) {
  for (const char* name : {"a/b", "100%", "%41", "with space", "\xC3\xA9", "?x=y"}) {
    here()[name] = info(name);  // the path comes decoded
    EXPECT_EQ(server.get(std::string("/v1/sessions/") + name)->json()["name"], name);
  }
}

TEST_F(Sessions, DeleteFreesItsCells) {
  here()["a"] = info("a");
  EXPECT_EQ(server.del("/v1/sessions/a")->response.body, R"({"deleted":true,"cells_freed":7})");
  EXPECT_EQ(server.del("/v1/sessions/a")->response.status, 404);
  EXPECT_EQ(server.get("/v1/sessions/a")->json()["error"]["type"], "not_found_error");
}

TEST_F(Sessions, ARunningOneIsNotDeleted) {
  here()["a"] = info("a");
  here()["a"].place = sched::SequencePlace{.slot = SlotId{0}, .running = true};
  auto answer = server.del("/v1/sessions/a");
  EXPECT_EQ(answer->response.status, 409);
  EXPECT_EQ(answer->json()["error"]["code"], "conflict");
  EXPECT_EQ(here().size(), 1U);
}

TEST_F(Sessions, B24_KeysAndSaltsSeeTheirOwn) {
  server.api_keys = {"k1", "k2"};
  const auto& keyring = server.context().keyring;
  server.engine.inspector.sessions_of[keyring.namespace_of("k1", "x y")]["a"] = info("a");
  const auto ask = [&](const char* method, const char* path, const char* key, const char* query) {
    return server.request({.method = method, .path = path, .query = query, .headers = {{"x-api-key", key}}});
  };
  EXPECT_EQ(ask("GET", "/v1/sessions", "k1", "cache_salt=x%20y")->json()["data"].size(), 1U);
  EXPECT_EQ(ask("GET", "/v1/sessions", "k1", "")->json()["data"].size(), 0U);
  EXPECT_EQ(ask("GET", "/v1/sessions", "k2", "cache_salt=x+y")->json()["data"].size(), 0U);
  EXPECT_EQ(ask("GET", "/v1/sessions/a", "k2", "cache_salt=x+y")->response.status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/a", "k2", "cache_salt=x+y")->response.status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/a", "k1", "")->response.status, 404);
  EXPECT_EQ(ask("GET", "/v1/sessions/a", "k1", "cache_salt=x+y")->response.status, 200);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/a", "k1", "cache_salt=x+y")->response.status, 200);
  EXPECT_EQ(ask("GET", "/v1/sessions", "wrong", "")->response.status, 401);
}

TEST_F(Sessions, BadSaltsAreRefusedEverywhere) {
  const std::string long_salt = "cache_salt=" + std::string(1025, 's');
  for (const std::string& query : {std::string("cache_salt=%zz"), long_salt}) {
    for (const char* path : {"/v1/sessions", "/v1/sessions/a", "/v1/pools", "/v1/pools/a", "/v1/tree"}) {
      auto answer = server.get(path, query);
      EXPECT_EQ(answer->response.status, 400) << path;
      EXPECT_EQ(answer->json()["error"]["param"], "cache_salt") << path;
    }
    EXPECT_EQ(server.del("/v1/sessions/a", query)->response.status, 400);
    EXPECT_EQ(server.del("/v1/pools/a", query)->response.status, 400);
  }
}

TEST_F(Sessions, TheAnswerComesWhenTheEngineHasLooked) {
  here()["a"] = info("a");
  server.engine.engine_stuck = true;
  auto answer = server.get("/v1/sessions/a");
  EXPECT_EQ(answer->n_sent, 0);
  server.engine.run_inspections();
  EXPECT_EQ(answer->n_sent, 0);  // not on the engine's thread
  answer->run();
  EXPECT_EQ(answer->n_sent, 1);
  EXPECT_EQ(answer->json()["name"], "a");
  EXPECT_EQ(answer.use_count(), 1);  // and nobody keeps the client's connection
}

TEST_F(Sessions, AClientThatLeavesMeanwhileHarmsNobody) {
  here()["a"] = info("a");
  server.engine.engine_stuck = true;
  auto answer = server.del("/v1/sessions/a");
  answer->client_leaves();
  std::weak_ptr<FakeResponder> gone = answer;
  answer.reset();
  server.engine.run_inspections();
  EXPECT_TRUE(here().empty());
  EXPECT_FALSE(gone.expired());  // its task is still to run
  gone.lock()->run();
  EXPECT_TRUE(gone.expired());
}

}  // namespace
}  // namespace coppice::api
