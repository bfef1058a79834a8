// Spec A12 and A14 end to end: named pools, sessions, and what people are told of the KV.
#include <fstream>
#include <thread>

#include "support.h"

namespace coppice::http_test {
namespace {

class Pools : public ServerTest {
 protected:
  Json make(const Json& body) const { return client().post("/v1/pools", body).json(); }
  Json get(const std::string& path) const { return client().get(path).json(); }
  Json remove(const std::string& path) const { return client().request("DELETE", path).json(); }
  Json ask(const Tokens& prompt, Json fields = Json::object()) const {
    Json body = greedy(prompt, 4);
    body.update(fields);
    return client().ask("/completion", body).at("coppice");
  }
};

TEST_F(Pools, A12_OutlivesEverythingElse) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "4096"}));
  const Tokens base = random_tokens(1, 1000);
  const Json made = make({{"name", "base"}, {"tokens", base}});
  EXPECT_EQ(made["tokens"], 1000);
  EXPECT_EQ(made["computed"], 1000);
  EXPECT_EQ(metric("coppice_kv_cells_pinned"), 1000);
  for (std::uint64_t i = 0; i < 3; ++i) ask(random_tokens(10 + i, 2900));
  EXPECT_GT(metric("coppice_sequences_evicted_total") + metric("coppice_sequences_spilled_total"), 0);
  const Json named = ask(joined(base, random_tokens(2, 20)), {{"pool", "base"}});
  EXPECT_EQ(named["source"], "pool");
  EXPECT_EQ(named["reused_by_source"]["pool"], 1000);
  EXPECT_EQ(named["computed"], 20);
  EXPECT_EQ(named["reason"], nullptr);
  const int other_slot = 1 - named["slot"].get<int>();
  EXPECT_EQ(ask(joined(base, random_tokens(3, 20)), {{"id_slot", other_slot}})["source"], "pool")
      << "without being named";
  EXPECT_EQ(metric("coppice_prompt_tokens_reused_total{source=\"pool\"}"), 2000);
  const Json pool = get("/v1/pools/base");
  EXPECT_EQ(pool["uses"], 2);
  EXPECT_EQ(pool["tokens"], 1000);
  EXPECT_EQ(get("/v1/pools")["data"].size(), 1U);

  EXPECT_EQ(remove("/v1/pools/base")["deleted"], true);
  EXPECT_EQ(metric("coppice_kv_cells_pinned"), 0);
  EXPECT_EQ(client().get("/v1/pools/base").status, 404);
  EXPECT_EQ(ask(random_tokens(5, 30), {{"pool", "base"}})["reason"], "not_resident");
}

TEST_F(Pools, A12_WhatCannotFitIsRefused) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "1024"}));
  const Response big = client().post("/v1/pools", {{"name", "big"}, {"tokens", random_tokens(1, 800)}});
  EXPECT_EQ(big.status, 400);
  EXPECT_NE(big.json()["error"]["message"].get<std::string>().find("may hold 768 of 1024"), std::string::npos)
      << big.body;
  EXPECT_EQ(make({{"name", "fits"}, {"tokens", random_tokens(1, 700)}})["computed"], 700);
  // What can never fit beside it is told at once, in the words that agents look for.
  const Response never = client().post("/completion", greedy(random_tokens(2, 500), 4));
  EXPECT_EQ(never.status, 400);
  EXPECT_EQ(never.json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(ask(joined(random_tokens(1, 700), random_tokens(2, 300)))["computed"], 300);
}

TEST_F(Pools, A12_ChatsThatBeginWithThePoolsMessagesBeginWithIt) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "4096"}));
  const Json intro = system("Answer briefly.\n" + filler(3, 20));
  const Json made = make({{"name", "intro"}, {"messages", messages({intro})}, {"ttl", 60}});
  const auto n = made["tokens"].get<TokenPos>();
  ASSERT_GT(n, 300);
  EXPECT_EQ(made["ttl_s"], 60);
  const Json list = messages(
      {intro, user("The code of Zorbin is 4821."), assistant("OK, noted."), user("What is the code of Zorbin?")});
  const Json answer = client().ask("/v1/chat/completions", {{"messages", list}, {"temperature", 0}, {"pool", "intro"}});
  EXPECT_EQ(content(answer), "The code of Zorbin is 4821.");
  EXPECT_EQ(answer["coppice"]["reused"], n);
  EXPECT_EQ(answer["coppice"]["source"], "pool");
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], n);
}

TEST_F(Pools, A12_WarmAtStartUpFromAFile) {
  const TempDir dir;
  const Tokens base = random_tokens(1, 500);
  const std::string file = (dir.path() / "pools.json").string();
  std::ofstream(file) << Json::array({Json{{"name", "one"}, {"tokens", base}},
                                      Json{{"name", "two"}, {"tokens", joined(base, random_tokens(2, 100))}}});
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "4096", "--pool", file}));
  ASSERT_TRUE(eventually([&] { return metric("coppice_pools") == 2; }));
  EXPECT_EQ(metric("coppice_kv_cells_pinned"), 600) << "what they share counts once";
  EXPECT_EQ(metric("coppice_prompt_tokens_computed_total"), 600);
  EXPECT_EQ(ask(joined(base, random_tokens(3, 10)))["reused_by_source"]["pool"], 500);
}

TEST_F(Pools, A12_ExpiresThoughNobodyAsksForAnything) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "4096"}));
  ASSERT_EQ(make({{"name", "brief"}, {"tokens", random_tokens(1, 50)}, {"ttl", 0.2}})["tokens"], 50);
  EXPECT_TRUE(eventually([&] { return metric("coppice_pools") == 0 && metric("coppice_kv_cells_pinned") == 0; }));
}

TEST_F(Pools, B24_BelongToTheirKeyAndSalt) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "4096", "--api-key", "one,two"}));
  const Headers one{{"Authorization", "Bearer one"}}, two{{"Authorization", "Bearer two"}};
  const Tokens base = random_tokens(1, 200);
  ASSERT_EQ(client().post("/v1/pools", {{"name", "base"}, {"tokens", base}}, one).status, 201);
  EXPECT_EQ(client().request("GET", "/v1/pools/base", "", one).status, 200);
  EXPECT_EQ(client().request("GET", "/v1/pools/base", "", two).status, 404);
  EXPECT_EQ(client().request("DELETE", "/v1/pools/base", "", two).status, 404);
  EXPECT_EQ(client().request("GET", "/v1/pools/base?cache_salt=x", "", one).status, 404);
  EXPECT_EQ(client().get("/v1/pools").status, 401);
  Json body = greedy(base, 2);
  body["pool"] = "base";
  EXPECT_EQ(client().post("/completion", body, two).json()["coppice"]["reused"], 0);
  EXPECT_EQ(client().post("/completion", body, one).json()["coppice"]["reused"], 199);
  EXPECT_TRUE(client().request("GET", "/v1/tree", "", two).json()["children"].size() == 1) << "its own prompt alone";
  EXPECT_EQ(client().post("/v1/explain", greedy(base, 2), two).json()["reused"], 199);
  EXPECT_EQ(client().post("/v1/explain", {{"prompt", base}, {"cache_salt", "x"}}, two).json()["nearest"], nullptr);
}

TEST_F(Pools, A14_SessionsAreListedAndForgotten) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "1", "-c", "4096"}));
  const Tokens base = random_tokens(1, 300);
  ask(joined(base, random_tokens(2, 50)), {{"session_id", "a/b c"}, {"parent_session_id", "root"}});
  ask(joined(base, random_tokens(3, 50)), {{"session_id", "second"}});
  const Json list = get("/v1/sessions")["data"];
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["name"], "second");
  EXPECT_EQ(list[0]["where"]["kind"], "slot");
  const Json first_session = get("/v1/sessions/a%2Fb%20c");
  EXPECT_EQ(first_session["name"], "a/b c");
  EXPECT_EQ(first_session["parent"], "root");
  EXPECT_EQ(first_session["tokens"], 350);
  EXPECT_EQ(first_session["held"], 350);
  EXPECT_EQ(first_session["where"]["kind"], "parked");
  const double used = metric("coppice_kv_cells_used");
  const Json gone = remove("/v1/sessions/a%2Fb%20c");
  EXPECT_EQ(gone["cells_freed"], used - metric("coppice_kv_cells_used"));
  EXPECT_GE(gone["cells_freed"], 50);
  EXPECT_LT(gone["cells_freed"], 60) << "the base stays with the other session";
  EXPECT_EQ(client().get("/v1/sessions/a%2Fb%20c").status, 404);
}

TEST_F(Pools, A14_ExplainSaysWhatWouldHappenAndWhereItParts) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "4096"}));
  const auto chat = [&](const std::string& code) {
    return Json{{"messages",
                 messages({system("Answer briefly.\n" + filler(3, 10)), user("The code of Zorbin is " + code + ".")})},
                {"session_id", "s"},
                {"temperature", 0}};
  };
  client().ask("/v1/chat/completions", chat("4821"));
  const double computed = metric("coppice_prompt_tokens_computed_total");
  const Json e = client().ask("/v1/explain", chat("9112"));
  EXPECT_EQ(metric("coppice_prompt_tokens_computed_total"), computed) << "it runs nothing";
  EXPECT_EQ(e["reason"], "diverged");
  EXPECT_EQ(e["nearest"]["session"], "s");
  EXPECT_EQ(e["nearest"]["common"], e["diverged_at"]);
  EXPECT_NE(e["nearest"]["before_text"].get<std::string>().find("The code of Zorbin is"), std::string::npos) << e;
  EXPECT_NE(e["nearest"]["prompt_text"].get<std::string>().find("112"), std::string::npos) << e;
  EXPECT_NE(e["nearest"]["held_text"].get<std::string>().find("821"), std::string::npos) << e;
  const Json did = client().ask("/v1/chat/completions", chat("9112"))["coppice"];
  for (const char* field : {"slot", "reused", "computed", "source", "reason", "diverged_at", "diverged_text"}) {
    EXPECT_EQ(e[field], did[field]) << field;
  }
  const Json tree = get("/v1/tree?depth=3");
  ASSERT_EQ(tree["children"].size(), 1U);
  EXPECT_EQ(tree["children"][0]["length"], e["nearest"]["common"]);
  EXPECT_EQ(tree["children"][0]["children"].size(), 2U);
}

}  // namespace
}  // namespace coppice::http_test
