#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

constexpr const char* kBase = R"({"name":"base","prompt":"ab"})";

struct Pools : testing::Test {
  FakeServer server;
  std::shared_ptr<FakeResponder> make(const std::string& body, std::map<std::string, std::string> headers = {}) {
    return server.post("/v1/pools", body, std::move(headers));
  }
  const sched::Request& last() { return server.engine.requests.back(); }
};

sched::PoolInfo info(const std::string& name) {
  sched::PoolInfo pool;
  pool.name = name;
  pool.tokens = 100;
  pool.exclusive = 40;
  pool.uses = 3;
  pool.age = std::chrono::milliseconds(2500);
  pool.idle = std::chrono::milliseconds(500);
  return pool;
}

TEST_F(Pools, A12_AreMadeByComputingTheirPrompt) {
  auto answer = make(R"({"name":"base","prompt":"ab","ttl":90.5})");
  ASSERT_EQ(server.engine.requests.size(), 1U);
  EXPECT_EQ(answer->n_sent, 0);  // it waits for the engine
  EXPECT_EQ(*last().prompt, (Tokens{256, 'a', 'b'}));
  ASSERT_TRUE(last().make_pool);
  EXPECT_EQ(last().make_pool->name, "base");
  EXPECT_EQ(last().make_pool->ttl, std::chrono::milliseconds(90'500));
  EXPECT_EQ(last().n_predict, 0);
  EXPECT_TRUE(last().placement.cache_prompt);
  EXPECT_EQ(last().placement.session, "");
  ASSERT_NE(last().sampler, nullptr);

  server.engine.finish(0, sched::StopKind::length, full_report());
  answer->run();
  EXPECT_EQ(answer->response.status, 201);
  const Json pool = answer->json();
  EXPECT_EQ(pool["name"], "base");
  EXPECT_EQ(pool["tokens"], 3);
  EXPECT_EQ(pool["computed"], 40);
  EXPECT_EQ(pool["reused"], 60);
  EXPECT_EQ(pool["ttl_s"], 90.5);
  EXPECT_EQ(pool["coppice"]["slot"], 2);
}

TEST_F(Pools, A12_WithoutTimeToLiveTheyStay) {
  for (const char* ttl : {"0", "0.0", "null"}) {
    auto answer = make(R"({"name":"base","prompt":"ab","ttl":)" + std::string(ttl) + "}");
    EXPECT_EQ(last().make_pool->ttl, Duration{0});
    server.engine.finish(server.engine.requests.size() - 1);
    answer->run();
    EXPECT_EQ(answer->json()["ttl_s"], nullptr);
  }
  make(R"({"name":"base","prompt":"ab","ttl":1e-9})");
  EXPECT_EQ(last().make_pool->ttl, Duration{1});  // however short, it is not for ever
  make(R"({"name":"base","prompt":"ab","ttl":1e9})");
  EXPECT_EQ(last().make_pool->ttl, std::chrono::seconds(1'000'000'000));
}

TEST_F(Pools, A12_OfEveryKindOfPrefix) {
  const std::pair<const char*, Tokens> cases[] = {
      {R"("prompt":"ab")", {256, 'a', 'b'}},
      {R"("prompt":[1,2])", {1, 2}},
      {R"("prompt":["a",5])", {256, 'a', 5}},
      {R"("prompt":{"prompt_string":"a"})", {256, 'a'}},
      {R"("prompt":["a"])", {256, 'a'}},
      {R"("tokens":[1,2])", {1, 2}},
      {R"("tokens":[1,2],"messages":null,"prompt":null)", {1, 2}},
  };
  for (const auto& [prefix, tokens] : cases) {
    make(R"({"name":"p",)" + std::string(prefix) + "}");
    EXPECT_EQ(*last().prompt, tokens) << prefix;
  }
  // A conversation, up to where its continuations part; what concerns sampling means nothing here.
  make(R"({"name":"p","messages":[{"role":"system","content":"s"}],"temperature":"hot","stream":true,"n":5})");
  EXPECT_EQ(server.tokenizer.text(*last().prompt, true), "<s>system:s\nuser:");
}

TEST_F(Pools, BadRequests) {
  const std::string name_129 = std::string(129, 'n'), salt_1025 = std::string(1025, 's');
  const std::tuple<std::string, std::string, std::string> cases[] = {
      {"", "", "empty"},
      {"[]", "", "JSON object"},
      {R"({"prompt":"a"})", "name", "missing"},
      {R"({"name":"","prompt":"a"})", "name", "missing"},
      {R"({"name":null,"prompt":"a"})", "name", "missing"},
      {R"({"name":5,"prompt":"a"})", "name", "string"},
      {R"({"name":")" + name_129 + R"(","prompt":"a"})", "name", "128 bytes"},
      {R"({"name":"p"})", "messages", "'messages', 'prompt' or 'tokens'"},
      {R"({"name":"p","prompt":"a","tokens":[1]})", "messages", "just one"},
      {R"({"name":"p","prompt":"a","messages":[]})", "messages", "just one"},
      {R"({"name":"p","prompt":""})", "prompt", "empty"},
      {R"({"name":"p","prompt":5})", "prompt", "text or a list"},
      {R"({"name":"p","prompt":["a","b"]})", "prompt", "2 prompts"},
      {R"({"name":"p","prompt":[259]})", "prompt", "0 to 258"},
      {R"({"name":"p","tokens":"a"})", "tokens", "list of token ids"},
      {R"({"name":"p","tokens":["a"]})", "tokens", "list of token ids"},
      {R"({"name":"p","tokens":[-1]})", "tokens", "0 to 258"},
      {R"({"name":"p","tokens":[]})", "prompt", "empty"},
      {R"({"name":"p","messages":5})", "messages", "array"},
      {R"({"name":"p","prompt":"a","ttl":-1})", "ttl", "number from 0"},
      {R"({"name":"p","prompt":"a","ttl":"60"})", "ttl", "number from 0"},
      {R"({"name":"p","prompt":"a","ttl":1000000001})", "ttl", "number from 0"},
      {R"({"name":"p","prompt":"a","cache_salt":5})", "cache_salt", "string"},
      {R"({"name":"p","prompt":"a","cache_salt":")" + salt_1025 + "\"}", "cache_salt", "1024 bytes"},
      {R"({"name":"p","prompt":")" + std::string(128, 'x') + "\"}", "prompt", "too long"},
  };
  server.tokenizer.add_bos = false;
  for (const auto& [body, param, words] : cases) {
    auto answer = make(body);
    EXPECT_EQ(answer->response.status, 400) << body;
    const Json error = answer->json()["error"];
    EXPECT_EQ(error["param"], param.empty() ? Json(nullptr) : Json(param)) << body << error;
    EXPECT_NE(error["message"].get<std::string>().find(words), std::string::npos) << body << error;
  }
  EXPECT_TRUE(server.engine.requests.empty());
  make(R"({"name":")" + std::string(128, 'n') + R"(","prompt":")" + std::string(127, 'x') + "\"}");
  EXPECT_EQ(server.engine.requests.size(), 1U);  // at the limits
}

TEST_F(Pools, A12_TheEnginesRefusalReachesTheClient) {
  server.engine.errors[0] = {ErrorKind::overloaded, "queue full", ""};
  EXPECT_EQ(make(kBase)->response.status, 503);
  server.engine.errors.clear();
  auto answer = make(kBase);
  last().sink->on_failed({ErrorKind::invalid_request, "a pool of 3 tokens does not fit", "name"});
  answer->run();
  EXPECT_EQ(answer->response.status, 400);
  EXPECT_EQ(answer->json()["error"]["message"], "a pool of 3 tokens does not fit");
  EXPECT_EQ(answer->json()["error"]["param"], "name");
}

TEST_F(Pools, AClientThatLeavesCancelsItsPool) {
  auto answer = make(kBase);
  answer->client_leaves();
  EXPECT_EQ(server.engine.cancelled, std::vector<RequestId>{last().id});
  last().sink->on_failed({ErrorKind::cancelled, "", ""});
  answer->run();
  EXPECT_EQ(answer->n_sent, 0);
  server.engine.requests.clear();
  EXPECT_EQ(answer.use_count(), 1);
}

TEST_F(Pools, ListAndOne) {
  auto& here = server.engine.inspector.pools_of[NamespaceId{}];
  EXPECT_EQ(server.get("/v1/pools")->response.body, R"({"object":"list","data":[]})");
  here["base"] = info("base");
  here["a/b"] = info("a/b");
  here["a/b"].expires_in = std::chrono::milliseconds(1500);
  const Json list = server.get("/v1/pools")->json();
  ASSERT_EQ(list["data"].size(), 2U);
  EXPECT_EQ(list["data"][0]["expires_in_s"], 1.5);
  EXPECT_EQ(list["data"][1].dump(),
            R"({"name":"base","tokens":100,"exclusive":40,"uses":3,"age_s":2.5,"idle_s":0.5,"expires_in_s":null})");
  EXPECT_EQ(server.get("/v1/pools/base")->json(), list["data"][1]);
  EXPECT_EQ(server.get("/v1/pools/a/b")->json()["name"], "a/b");
  EXPECT_EQ(server.get("/v1/pools/none")->response.status, 404);
  EXPECT_EQ(server.get("/v1/pools/")->response.status, 404);
}

TEST_F(Pools, Delete) {
  server.engine.inspector.pools_of[NamespaceId{}]["base"] = info("base");
  EXPECT_EQ(server.del("/v1/pools/base")->response.body, R"({"deleted":true,"cells_freed":7})");
  EXPECT_EQ(server.del("/v1/pools/base")->response.status, 404);
}

TEST_F(Pools, B24_KeysAndSaltsHaveTheirOwn) {
  server.api_keys = {"k1", "k2"};
  const auto& keyring = server.context().keyring;
  const std::map<std::string, std::string> k1 = {{"x-api-key", "k1"}}, k2 = {{"x-api-key", "k2"}};
  const NamespaceId ns = keyring.namespace_of("k1", "x");
  make(R"({"name":"base","prompt":"ab","cache_salt":"x"})", k1);
  EXPECT_EQ(last().placement.ns, ns);
  make(kBase, k2);
  EXPECT_EQ(last().placement.ns, keyring.namespace_of("k2", ""));
  EXPECT_EQ(make(kBase)->response.status, 401);

  server.engine.inspector.pools_of[ns]["base"] = info("base");
  const auto ask = [&](const char* method, const char* path, const auto& headers, const char* query) {
    return server.request({.method = method, .path = path, .query = query, .headers = headers});
  };
  EXPECT_EQ(ask("GET", "/v1/pools", k1, "cache_salt=x")->json()["data"].size(), 1U);
  EXPECT_EQ(ask("GET", "/v1/pools", k1, "")->json()["data"].size(), 0U);
  EXPECT_EQ(ask("GET", "/v1/pools", k2, "cache_salt=x")->json()["data"].size(), 0U);
  EXPECT_EQ(ask("GET", "/v1/pools/base", k2, "cache_salt=x")->response.status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/pools/base", k2, "cache_salt=x")->response.status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/pools/base", k1, "")->response.status, 404);
  EXPECT_EQ(ask("GET", "/v1/pools/base", k1, "cache_salt=x")->response.status, 200);
  EXPECT_EQ(ask("DELETE", "/v1/pools/base", k1, "cache_salt=x")->response.status, 200);
}

}  // namespace
}  // namespace coppice::api
