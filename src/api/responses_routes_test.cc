// Conversations that go on by the id of a response, and what can be asked of a stored one.
#include "api/responses_routes.h"

#include <gtest/gtest.h>

#include "api/fakes.h"
#include "api/sse_for_test.h"

namespace coppice::api {
namespace {

struct ResponsesServer : FakeServer {
  // Runs a request to its end; the model says `text`.
  Json ask(const std::string& fields, const std::string& text = "yes", sched::Report report = {}) {
    auto answer = post("/v1/responses", "{" + fields + "}");
    if (answer->n_sent > 0) return answer->json();
    engine.text(engine.requests.size() - 1, text);
    engine.finish(engine.requests.size() - 1, sched::StopKind::end_of_generation, std::move(report));
    answer->run();
    return answer->json();
  }
  std::string last_prompt() const { return templates.rendered["messages"].dump(); }
};

std::string after(const Json& response) {
  return R"("previous_response_id":")" + response["id"].get<std::string>() + '"';
}
std::string path_of(const Json& response) { return "/v1/responses/" + response["id"].get<std::string>(); }

TEST(ResponsesRoutes, AConversationGoesOnByItsId) {
  ResponsesServer server;
  const Json one = server.ask(R"("instructions":"first","input":"hi")");
  const Json two = server.ask(R"("instructions":"second","input":"more",)" + after(one), "sure");
  EXPECT_EQ(two["previous_response_id"], one["id"]);
  EXPECT_EQ(server.last_prompt(), R"([{"role":"system","content":"second"},{"role":"user","content":"hi"},)"
                                  R"({"role":"assistant","content":"yes"},{"role":"user","content":"more"}])")
      << "instructions are each request's own";
  server.ask(R"("input":"last",)" + after(two));
  EXPECT_EQ(server.last_prompt(),
            R"([{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},{"role":"user","content":"more"},)"
            R"({"role":"assistant","content":"sure"},{"role":"user","content":"last"}])");
  server.ask(R"("input":"other branch",)" + after(one));
  EXPECT_EQ(server.last_prompt(), R"([{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},)"
                                  R"({"role":"user","content":"other branch"}])");
}

TEST(ResponsesRoutes, AToolLoopGoesOnByItsId) {
  ResponsesServer server;
  const Json one = server.ask(R"("input":"hi","tools":[{"type":"function","name":"grep"}])", "Tgrep");
  server.ask(after(one) + R"(,"input":[{"type":"function_call_output","call_id":"call_0","output":"found"}])");
  EXPECT_EQ(server.last_prompt(),
            R"([{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_0",)"
            R"("type":"function","function":{"name":"grep","arguments":"{}"}}]},)"
            R"({"role":"tool","tool_call_id":"call_0","content":"found"}])");
}

TEST(ResponsesRoutes, AStreamIsStoredBeforeItsEndIsTold) {
  ResponsesServer server;
  auto answer = server.post("/v1/responses", R"({"input":"hi","stream":true})");
  const Json created = sse_events(answer->written)[0].data["response"];
  EXPECT_EQ(server.get(path_of(created))->response.status, 404);
  server.engine.text(0, "yes");
  server.engine.finish(0);
  answer->run();
  const Json last = sse_events(answer->written).back().data["response"];
  EXPECT_EQ(server.get(path_of(created))->json(), last);
}

TEST(ResponsesRoutes, WhatShouldNotBeKeptIsNot) {
  ResponsesServer server;
  const Json one = server.ask(R"("input":"hi","store":false)");
  EXPECT_EQ(server.get(path_of(one))->response.status, 404);
  auto failed = server.post("/v1/responses", R"({"input":"hi","stream":true})");
  server.engine.requests.back().sink->on_failed({ErrorKind::internal, "broken", ""});
  failed->run();
  EXPECT_EQ(server.context().responses->count(), 0U);
}

TEST(ResponsesRoutes, AnUnknownPreviousResponseIsOpenAIsError) {
  ResponsesServer server;
  auto answer = server.post("/v1/responses", R"({"input":"hi","previous_response_id":"resp_gone"})");
  EXPECT_EQ(answer->response.status, 404);
  const Json error = answer->json()["error"];
  EXPECT_EQ(error["code"], "previous_response_not_found");
  EXPECT_EQ(error["param"], "previous_response_id");
  EXPECT_EQ(error["message"], "Previous response with id 'resp_gone' not found.");
}

TEST(ResponsesRoutes, NamespacesDoNotSeeEachOther) {
  ResponsesServer server;
  const Json one = server.ask(R"("input":"hi","cache_salt":"a")");
  EXPECT_EQ(server.ask(R"("input":"more",)" + after(one))["error"]["code"], "previous_response_not_found");
  EXPECT_EQ(server.ask(R"("input":"more","cache_salt":"a",)" + after(one))["status"], "completed");
  EXPECT_EQ(server.get(path_of(one))->response.status, 404);
  EXPECT_EQ(server.get(path_of(one), "cache_salt=a")->response.status, 200);
  EXPECT_EQ(server.del(path_of(one), "cache_salt=b")->response.status, 404);
  const std::string item = one["output"][0]["id"];
  EXPECT_EQ(server.ask(R"("input":[{"type":"item_reference","id":")" + item + R"("}])")["error"]["param"], "input");
}

TEST(ResponsesRoutes, GetAndDelete) {
  ResponsesServer server;
  const Json one = server.ask(R"("input":"hi")");
  EXPECT_EQ(server.get(path_of(one))->json(), one);
  EXPECT_EQ(server.del(path_of(one))->json().dump(),
            R"({"id":)" + one["id"].dump() + R"(,"object":"response","deleted":true})");
  EXPECT_EQ(server.get(path_of(one))->response.status, 404);
  auto again = server.del(path_of(one));
  EXPECT_EQ(again->response.status, 404);
  EXPECT_EQ(again->json()["error"]["message"], "Response with id '" + one["id"].get<std::string>() + "' not found.");
}

TEST(ResponsesRoutes, InputItems) {
  ResponsesServer server;
  const Json one = server.ask(R"("input":"hi")");
  const Json two = server.ask(R"("input":[{"role":"user","content":"a"},{"role":"user","content":"b"}],)" + after(one));
  const auto list = [&](const std::string& query) { return server.get(path_of(two) + "/input_items", query)->json(); };
  const auto texts = [](const Json& page) {
    std::string out;
    for (const Json& item : page["data"]) {
      const Json& content = item["content"];
      out += (content.is_string() ? content : content[0]["text"]).get<std::string>() + " ";
    }
    return out;
  };
  const Json all = list("order=asc");
  EXPECT_EQ(texts(all), "hi yes a b ");
  EXPECT_EQ(all["object"], "list");
  EXPECT_EQ(all["has_more"], false);
  EXPECT_EQ(all["first_id"], all["data"][0]["id"]);
  EXPECT_EQ(texts(list("")), "b a yes hi ");
  const Json page = list("limit=2");
  EXPECT_EQ(texts(page), "b a ");
  EXPECT_EQ(page["has_more"], true);
  EXPECT_EQ(texts(list("after=" + page["last_id"].get<std::string>())), "yes hi ");
  EXPECT_EQ(server.get(path_of(two) + "/input_items", "limit=0")->response.status, 400);
  EXPECT_EQ(server.get("/v1/responses/resp_gone/input_items")->response.status, 404);
}

TEST(ResponsesRoutes, ItemsCanBeReferredTo) {
  ResponsesServer server;
  const Json one = server.ask(R"("input":"hi","tools":[{"type":"function","name":"grep"}])", "Tgrep");
  const Json items = server.get(path_of(one) + "/input_items")->json()["data"];
  const auto reference = [](const Json& item) { return R"({"type":"item_reference","id":)" + item["id"].dump() + "}"; };
  const Json two = server.ask(R"("input":[)" + reference(items[0]) + "," + reference(one["output"][0]) +
                              R"(,{"type":"function_call_output","call_id":"call_0","output":"x"}])");
  EXPECT_EQ(two["status"], "completed");
  EXPECT_EQ(server.templates.rendered["messages"].size(), 3U);
  EXPECT_EQ(server.templates.rendered["messages"][1]["tool_calls"][0]["id"], "call_0");
  // What was referred to is stored in full: the conversation does not depend on the first response any more.
  server.del(path_of(one));
  server.ask(R"("input":"more",)" + after(two));
  EXPECT_EQ(server.templates.rendered["messages"].size(), 5U);
}

TEST(ResponsesRoutes, TheStoreIsBounded) {
  ResponsesServer server;
  server.limits.stored_responses_max = 2;
  const Json one = server.ask(R"("input":"1")");
  server.ask(R"("input":"2")");
  server.ask(R"("input":"3")");
  EXPECT_EQ(server.get(path_of(one))->response.status, 404);
}

TEST(ResponsesRoutes, OtherMethodsAndKeys) {
  ResponsesServer server;
  server.api_keys = {"key"};
  EXPECT_EQ(server.get("/v1/responses/resp_1")->response.status, 401);
  const std::map<std::string, std::string> key = {{"authorization", "Bearer key"}};
  EXPECT_EQ(server.post("/v1/responses/resp_1/cancel", "{}", key)->response.status, 405);
  EXPECT_EQ(server.post("/v1/responses", "{", key)->response.status, 400);
}

TEST(ResponsesRoutes, DiagnosticsCompareWithAStoredResponse) {
  ResponsesServer server;
  sched::Report long_prompt;
  long_prompt.prompt_tokens = 100;
  const Json one = server.ask(R"("instructions":"a","input":"hi")", "yes", long_prompt);
  const auto diagnose = [&](const std::string& fields, TokenPos reused, const std::string& id) {
    sched::Report report;
    report.prompt_tokens = 120;
    report.reused_slot = reused;
    report.reason = kv::MissReason::diverged;
    return server.ask(R"("prompt_cache_options":{"comparison_response_id":)" + id + "}," + fields, "yes", report)
        .value("prompt_cache_diagnostics", Json("none"))
        .dump();
  };
  const std::string id = one["id"].dump(), same = R"("instructions":"a","input":[{"role":"user","content":"hi"},
      {"role":"assistant","content":"yes"},{"role":"user","content":"more"}])";
  EXPECT_EQ(diagnose(same, 99, id), R"({"type":"cache_hit"})");
  EXPECT_EQ(diagnose(same, 50, id), R"({"type":"unavailable"})");
  EXPECT_EQ(diagnose(R"("instructions":"b","input":"hi")", 50, id),
            R"({"type":"cache_miss","reason":"input_changed","changed":["instructions"],)"
            R"("comparison_reusable_tokens":99,"cache_missed_tokens":49})");
  EXPECT_EQ(diagnose(R"("input":"ho","tools":[{"type":"function","name":"f"}])", 0, id),
            R"({"type":"cache_miss","reason":"tools_changed","changed":["tools","instructions","input"],)"
            R"("comparison_reusable_tokens":99,"cache_missed_tokens":99})");
  EXPECT_EQ(diagnose(same, 0, R"("resp_gone")"), R"({"type":"comparison_response_not_found"})");
  EXPECT_EQ(diagnose(same, 0, "null"), R"("none")") << "not asked for";
}

}  // namespace
}  // namespace coppice::api
