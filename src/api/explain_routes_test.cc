#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

struct Explain : testing::Test {
  FakeServer server;
  sched::Explanation& found() { return server.engine.inspector.explanation; }
  std::shared_ptr<FakeResponder> ask(const std::string& body, std::map<std::string, std::string> headers = {}) {
    return server.post("/v1/explain", body, std::move(headers));
  }
};

TEST_F(Explain, A14_Everything) {
  found() = {.rule = kv::SlotRule::similarity,
             .slot = SlotId{3},
             .prompt_tokens = 50,
             .reused = 30,
             .computed = 20,
             .source = kv::Source::donor,
             .prepared = 12,
             .from = sched::SequencePlace{.slot = SlotId{1}, .running = true},
             .reason = kv::MissReason::diverged,
             .diverged_at = 30,
             .diverged_text = "here \xff",
             .waits_for = RequestId{9},
             .waits_until = 40,
             .waits_for_cells = true,
             .cells_needed = 21,
             .nearest = sched::Nearest{.session = "other",
                                       .place = {.pool = "base"},
                                       .length = 45,
                                       .common = 30,
                                       .before = {1, 2},
                                       .prompt_after = {3},
                                       .held_after = {4, 5},
                                       .before_text = "b",
                                       .prompt_text = "p",
                                       .held_text = "h"}};
  auto answer = ask(R"({"prompt":"hi","session_id":"s"})");
  EXPECT_EQ(answer->response.status, 200);
  EXPECT_EQ(answer->response.body,
            R"({"prompt_tokens":50,"reused":30,"computed":20,"source":"donor","prepared":12,)"
            R"("from":{"kind":"slot","slot":1,"running":true},"slot":3,"slot_rule":"similarity","reason":"diverged",)"
            "\"diverged_at\":30,\"diverged_text\":\"here \xEF\xBF\xBD\","
            R"("waits_for":9,"waits_until":40,"waits_for_cells":true,"cells_needed":21,)"
            R"("session":"s","session_rule":"body.session_id",)"
            R"("nearest":{"session":"other","where":{"kind":"pool","pool":"base"},"length":45,"common":30,)"
            R"("before_text":"b","prompt_text":"p","held_text":"h",)"
            R"("before_tokens":[1,2],"prompt_tokens":[3],"held_tokens":[4,5]}})");
  EXPECT_TRUE(server.engine.requests.empty());  // it runs nothing
}

TEST_F(Explain, WhatIsNotThereIsNull) {
  const Json answer = ask(R"({"prompt":"hi"})")->json();
  for (const char* name :
       {"from", "slot", "reason", "diverged_at", "diverged_text", "waits_for", "session", "session_rule", "nearest"}) {
    EXPECT_TRUE(answer.at(name).is_null()) << name;
  }
  EXPECT_EQ(answer["slot_rule"], "wait");
  EXPECT_EQ(answer["source"], "none");
}

TEST_F(Explain, EveryRuleHasItsName) {
  using kv::SlotRule;
  const std::pair<SlotRule, const char*> rules[] = {{SlotRule::wait, "wait"},
                                                    {SlotRule::explicit_id, "explicit_id"},
                                                    {SlotRule::session, "session"},
                                                    {SlotRule::similarity, "similarity"},
                                                    {SlotRule::least_recent, "least_recent"}};
  for (const auto& [rule, name] : rules) {
    found().rule = rule;
    EXPECT_EQ(ask(R"({"prompt":"hi"})")->json()["slot_rule"], name);
  }
}

// Asks on the completion's own route as well, and compares what reaches the engine.
TEST_F(Explain, A14_ExplainsWhatTheRequestItselfWouldDo) {
  const std::pair<const char*, const char*> cases[] = {
      {"/completion", R"({"prompt":"hi","id_slot":2,"cache_prompt":false,"pool":"base","n_predict":4})"},
      {"/completion", R"({"prompt":["a",5,"b"],"session_id":"s","parent_session_id":"p","cache_salt":"x"})"},
      {"/v1/completions", R"({"prompt":[1,2,3],"shared_pool_slot":1,"shared_prefix_n_tokens":2,"messages":null})"},
      {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],"stream":true,"n":2,"logprobs":true})"},
      {"/v1/responses", R"({"instructions":"be brief","input":"hi","stream":true,"max_output_tokens":3})"},
  };
  for (const auto& [path, body] : cases) {
    for (const char* header : {"", "from-header"}) {
      server.engine.requests.clear();
      server.post(path, body, {{"x-session-id", header}});
      EXPECT_EQ(ask(body, {{"x-session-id", header}})->response.status, 200) << body;
      const sched::Request& request = server.engine.requests.at(0);
      const auto& [prompt, placement] = server.engine.inspector.asked.back();
      EXPECT_EQ(prompt, *request.prompt) << body;
      EXPECT_EQ(placement.id_slot, request.placement.id_slot);
      EXPECT_EQ(placement.session, request.placement.session);
      EXPECT_EQ(placement.session_rule, request.placement.session_rule);
      EXPECT_EQ(placement.parent_session, request.placement.parent_session);
      EXPECT_EQ(placement.shared_pool_slot, request.placement.shared_pool_slot);
      EXPECT_EQ(placement.shared_prefix_n_tokens, request.placement.shared_prefix_n_tokens);
      EXPECT_EQ(placement.pool, request.placement.pool);
      EXPECT_EQ(placement.cache_prompt, request.placement.cache_prompt);
      EXPECT_EQ(placement.ns, request.placement.ns);
      EXPECT_FALSE(placement.is_fork);
    }
  }
}

TEST_F(Explain, BadRequests) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"[]", ""},
      {"{}", "prompt"},
      {R"({"prompt":""})", "prompt"},
      {R"({"prompt":["a","b"]})", "prompt"},
      {R"({"prompt":[999]})", "prompt"},
      {R"({"prompt":")" + std::string(128, 'x') + "\"}", "prompt"},
      {R"({"messages":7})", "messages"},
      {R"({"messages":7,"prompt":"hi"})", "messages"},
      {R"({"prompt":"hi","id_slot":4})", "id_slot"},
      {R"({"prompt":"hi","pool":5})", "pool"},
      {R"({"prompt":"hi","session_id":[]})", "session_id"},
      {R"({"prompt":"hi","n":"x"})", "n"},
  };
  server.tokenizer.add_bos = false;
  for (const auto& [body, param] : cases) {
    auto answer = ask(body);
    EXPECT_EQ(answer->response.status, 400) << body;
    EXPECT_EQ(answer->json()["error"]["param"], param.empty() ? Json(nullptr) : Json(param)) << body;
  }
  EXPECT_TRUE(server.engine.inspector.asked.empty());
  EXPECT_EQ(ask(R"({"prompt":")" + std::string(128, 'x') + "\"}")->json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(ask(R"({"prompt":")" + std::string(127, 'x') + "\"}")->response.status, 200);
}

TEST(Tree, NodesWithinNodes) {
  FakeServer server;
  server.engine.inspector.trees[NamespaceId{}] = {.sequences = 2,
                                                  .children = {{.begin = 0,
                                                                .length = 10,
                                                                .text = "You\xff",
                                                                .ends = {{.slot = SlotId{1}}, {}},
                                                                .sequences = 2,
                                                                .hidden_children = 3}}};
  EXPECT_EQ(server.get("/v1/tree")->response.body,
            R"({"begin":0,"length":0,"text":"","sequences":2,"ends":[],"children":[{"begin":0,"length":10,)"
            "\"text\":\"You\xEF\xBF\xBD\","
            R"("sequences":2,"ends":[{"kind":"slot","slot":1,"running":false},{"kind":"parked"}],"children":[],)"
            R"("hidden_children":3}],"hidden_children":0})");
  EXPECT_EQ(server.engine.inspector.depth_max, 4);
  EXPECT_EQ(server.engine.inspector.nodes_max, 200);
}

TEST(Tree, IsBounded) {
  FakeServer server;
  EXPECT_EQ(server.get("/v1/tree", "depth=64&nodes=2000")->response.status, 200);
  EXPECT_EQ(server.engine.inspector.depth_max, 64);
  EXPECT_EQ(server.engine.inspector.nodes_max, 2000);
  EXPECT_EQ(server.get("/v1/tree", "depth=1&nodes=1")->response.status, 200);
  const std::pair<const char*, const char*> cases[] = {
      {"depth=0", "depth"}, {"depth=65", "depth"}, {"depth=x", "depth"}, {"nodes=0", "nodes"}, {"nodes=2001", "nodes"}};
  for (const auto& [query, param] : cases) {
    auto answer = server.get("/v1/tree", query);
    EXPECT_EQ(answer->response.status, 400) << query;
    EXPECT_EQ(answer->json()["error"]["param"], param) << query;
  }
}

TEST(Tree, B24_ShowsTheCallersOwn) {
  FakeServer server;
  server.api_keys = {"k1", "k2"};
  server.engine.inspector.trees[server.context().keyring.namespace_of("k1", "x")].sequences = 5;
  const auto sequences = [&](const char* key, const char* query) {
    return server.request({.method = "GET", .path = "/v1/tree", .query = query, .headers = {{"x-api-key", key}}})
        ->json()["sequences"];
  };
  EXPECT_EQ(sequences("k1", "cache_salt=x"), 5);
  EXPECT_EQ(sequences("k1", ""), 0);
  EXPECT_EQ(sequences("k2", "cache_salt=x"), 0);
}

}  // namespace
}  // namespace coppice::api
