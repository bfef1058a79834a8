#include <gtest/gtest.h>

#include "api/fakes.h"

namespace coppice::api {
namespace {

std::string header(const HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(Routes, UnknownPathsAndMethodsAreJsonErrors) {
  FakeServer server;
  auto unknown = server.get("/no/such");
  EXPECT_EQ(unknown->response.status, 404);
  EXPECT_EQ(unknown->json()["error"]["type"], "not_found_error");
  EXPECT_NE(unknown->json()["error"]["message"].get<std::string>().find("/no/such"), std::string::npos);
  EXPECT_EQ(server.get("")->response.status, 404);
  EXPECT_EQ(server.get("/health/")->response.status, 404);
  EXPECT_EQ(server.get("/\xff")->response.status, 404);  // and its body is still JSON
  EXPECT_NO_THROW((void)server.get("/\xff")->json());

  auto wrong = server.get("/v1/chat/completions");
  EXPECT_EQ(wrong->response.status, 405);
  EXPECT_EQ(header(wrong->response, "Allow"), "POST, OPTIONS");
  EXPECT_EQ(wrong->json()["error"]["code"], "method_not_allowed");
  EXPECT_EQ(server.post("/slots", "{}")->response.status, 405);
  EXPECT_EQ(header(server.post("/slots", "{}")->response, "Allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(server.request({.method = "DELETE", .path = "/props"})->response.status, 405);
  EXPECT_EQ(server.request({.method = "HEAD", .path = "/health"})->response.status, 200);
  EXPECT_EQ(server.request({.method = "HEAD", .path = "/completion"})->response.status, 405);
}

TEST(Routes, OnePathMayTakeSeveralMethods) {
  FakeServer server;
  const std::pair<const char*, const char*> cases[] = {
      {"/v1/pools", "GET, HEAD, POST, OPTIONS"}, {"/v1/pools/x/y", "GET, HEAD, DELETE, OPTIONS"},
      {"/v1/sessions", "GET, HEAD, OPTIONS"},    {"/v1/sessions/x", "GET, HEAD, DELETE, OPTIONS"},
      {"/v1/explain", "POST, OPTIONS"},          {"/v1/tree", "GET, HEAD, OPTIONS"}};
  for (const auto& [path, methods] : cases) {
    auto wrong = server.request({.method = "PUT", .path = path});
    EXPECT_EQ(wrong->response.status, 405) << path;
    EXPECT_EQ(header(wrong->response, "Allow"), methods) << path;
    EXPECT_NE(wrong->response.body.find(methods), std::string::npos) << path;
    auto options = server.request({.method = "OPTIONS", .path = path});
    EXPECT_EQ(options->response.status, 204) << path;
    EXPECT_EQ(header(options->response, "Allow"), methods) << path;
  }
  EXPECT_EQ(server.request({.method = "HEAD", .path = "/v1/pools"})->response.status, 200);
  EXPECT_EQ(server.request({.method = "HEAD", .path = "/v1/pools/none"})->response.status, 404);
  EXPECT_EQ(server.del("/v1/pools")->response.status, 405);
  for (const char* path : {"/v1/pools/", "/v1/sessions/", "/v1/poolsx", "/v1/explain/x", "/v1/tree/"}) {
    EXPECT_EQ(server.get(path)->response.status, 404) << path;
    EXPECT_EQ(header(server.request({.method = "OPTIONS", .path = path})->response, "Allow"), "") << path;
  }
}

TEST(Routes, EveryMethodOfAPathNeedsTheKey) {
  FakeServer server;
  server.api_keys = {"k"};
  const std::pair<const char*, const char*> routes[] = {
      {"GET", "/v1/pools"},    {"POST", "/v1/pools"},     {"GET", "/v1/pools/x"},       {"DELETE", "/v1/pools/x"},
      {"GET", "/v1/sessions"}, {"GET", "/v1/sessions/x"}, {"DELETE", "/v1/sessions/x"}, {"POST", "/v1/explain"},
      {"GET", "/v1/tree"},     {"PUT", "/v1/tree"},       {"GET", "/no/such"},          {"POST", "/completion"},
  };
  for (const auto& [method, path] : routes) {
    EXPECT_EQ(server.request({.method = method, .path = path})->response.status, 401) << method << path;
  }
  EXPECT_TRUE(server.engine.inspections.empty());
  EXPECT_EQ(server.get("/health")->response.status, 200);
  EXPECT_EQ(server.post("/health", "")->response.status, 405);
}

TEST(Routes, OptionsAreAnsweredWithoutCors) {
  FakeServer server;
  server.api_keys = {"k"};
  auto answer = server.request({.method = "OPTIONS", .path = "/completion"});
  EXPECT_EQ(answer->response.status, 204);
  EXPECT_EQ(answer->response.body, "");
  EXPECT_EQ(header(answer->response, "Allow"), "POST, OPTIONS");
  EXPECT_EQ(header(answer->response, "Access-Control-Allow-Origin"), "");
  EXPECT_EQ(server.request({.method = "OPTIONS", .path = "/no/such"})->response.status, 204);
}

TEST(Routes, RefusalsOfTheHttpLayerHaveTheSameShape) {
  FakeServer server;
  server.get("/health");  // makes the router
  const std::pair<int, const char*> cases[] = {{400, "invalid_request_error"}, {408, "invalid_request_error"},
                                               {413, "invalid_request_error"}, {431, "invalid_request_error"},
                                               {500, "server_error"},          {501, "not_supported_error"},
                                               {503, "unavailable_error"}};
  for (const auto& [status, type] : cases) {
    const HttpResponse response = server.router->refuse(status, "too big \xff", "");
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(Json::parse(response.body)["error"]["type"], type);
    EXPECT_EQ(header(response, "Retry-After"), status == 503 ? "1" : "");
  }
}

TEST(Routes, Health) {
  FakeServer server;
  EXPECT_EQ(server.get("/health")->response.body, R"({"status":"ok"})");
  EXPECT_EQ(server.get("/v1/health")->response.body, R"({"status":"ok"})");
  EXPECT_EQ(server.get("/health")->response.content_type, "application/json; charset=utf-8");
}

TEST(Routes, Models) {
  FakeServer server;
  for (const char* path : {"/v1/models", "/models"}) {
    const Json models = server.get(path)->json();
    EXPECT_EQ(models["object"], "list");
    ASSERT_EQ(models["data"].size(), 1U);
    const Json& model = models["data"][0];
    EXPECT_EQ(model["id"], "test-model");
    EXPECT_EQ(model["object"], "model");
    EXPECT_EQ(model["created"], 77);
    EXPECT_EQ(model["meta"]["n_ctx"], 128);
    EXPECT_EQ(model["meta"]["n_ctx_train"], 512);
    EXPECT_EQ(model["meta"]["n_vocab"], 259);
    EXPECT_EQ(model["meta"]["n_embd"], 8);
    EXPECT_EQ(model["meta"]["n_params"], 1000);
    EXPECT_EQ(model["meta"]["size"], 2000);
  }
}

TEST(Routes, Props) {
  FakeServer server;
  const Json props = server.get("/props")->json();
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 128);
  EXPECT_EQ(props["default_generation_settings"]["params"]["temperature"], 0.5);
  EXPECT_EQ(props["total_slots"], 4);
  EXPECT_EQ(props["model_path"], "/models/test.gguf");
  EXPECT_EQ(props["model_alias"], "test-model");
  EXPECT_EQ(props["chat_template"], "{{ messages }}");
  EXPECT_EQ(props["chat_template_caps"]["supports_tools"], true);
  EXPECT_EQ(props["late_system_messages"],
            Json({{"template", "refused"}, {"rendered_as", "user"}, {"in_place", true}}));
  EXPECT_EQ(props["bos_token"], "<s>");
  EXPECT_EQ(props["eos_token"], "</s>");
  EXPECT_EQ(props["build_info"], "coppice test");
  EXPECT_EQ(props["modalities"]["vision"], false);
}

TEST(Routes, Slots) {
  FakeServer server;
  server.engine.state.slots = {
      {.id = SlotId{0}, .held = 7, .exclusive = 3},
      {.id = SlotId{1},
       .busy = true,
       .held = 9,
       .exclusive = 9,
       .session = "s",
       .request = RequestId{5},
       .prompt_tokens = 20,
       .processed = 8,
       .predicted = 1},
  };
  const Json slots = server.get("/slots")->json();
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[0]["id"], 0);
  EXPECT_EQ(slots[0]["is_processing"], false);
  EXPECT_EQ(slots[0]["id_task"], -1);
  EXPECT_EQ(slots[0]["session"], nullptr);
  EXPECT_EQ(slots[0]["n_held"], 7);
  EXPECT_EQ(slots[0]["n_exclusive"], 3);
  EXPECT_EQ(slots[1]["is_processing"], true);
  EXPECT_EQ(slots[1]["id_task"], 5);
  EXPECT_EQ(slots[1]["session"], "s");
  EXPECT_EQ(slots[1]["n_prompt_tokens"], 20);
  EXPECT_EQ(slots[1]["n_prompt_tokens_processed"], 8);
  EXPECT_EQ(slots[1]["next_token"][0]["n_decoded"], 1);

  EXPECT_EQ(server.get("/slots", "fail_on_no_slot=1")->response.status, 200);
  server.engine.state.slots[0].busy = true;
  EXPECT_EQ(server.get("/slots", "fail_on_no_slot=0")->response.status, 200);
  EXPECT_EQ(server.get("/slots", "a=b&fail_on_no_slot=1")->response.status, 503);
}

TEST(Routes, MetricsArePrometheusText) {
  FakeServer server;
  auto answer = server.get("/metrics");
  EXPECT_EQ(answer->response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(answer->response.body.find("coppice_kv_cells_used"), std::string::npos);
}

TEST(Routes, SlotsAndMetricsCanBeOff) {
  FakeServer server;
  server.endpoint_slots = server.endpoint_metrics = false;
  EXPECT_EQ(server.get("/slots")->response.status, 501);
  EXPECT_EQ(server.get("/metrics")->json()["error"]["type"], "not_supported_error");
}

TEST(Routes, TokenizeAndDetokenize) {
  FakeServer server;
  const auto tokens = [&](const char* body) { return server.post("/tokenize", body)->json()["tokens"].dump(); };
  EXPECT_EQ(tokens(R"({"content":"ab"})"), "[97,98]");
  EXPECT_EQ(tokens(R"({"content":""})"), "[]");
  EXPECT_EQ(tokens(R"({"content":"a","add_special":true})"), "[256,97]");
  EXPECT_EQ(tokens(R"({"content":"<|call|>"})"), "[258]");
  EXPECT_EQ(tokens(R"({"content":"<","parse_special":false})"), "[60]");
  EXPECT_EQ(tokens(R"({"content":["a",5,"b"]})"), "[97,5,98]");
  EXPECT_EQ(tokens(R"({"content":"aé","with_pieces":true})"),
            R"([{"id":97,"piece":"a"},{"id":195,"piece":[195]},{"id":169,"piece":[169]}])");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens":[97,195,169,258]})")->json()["content"], "aé<|call|>");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens":[]})")->json()["content"], "");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens":[97,195]})")->json()["content"], "a\xEF\xBF\xBD");
}

TEST(Routes, ApplyTemplate) {
  FakeServer server;
  const char* body = R"({"messages":[{"role":"user","content":"hi"}]})";
  EXPECT_EQ(server.post("/apply-template", body)->json()["prompt"], "user:hi\n");
}

}  // namespace
}  // namespace coppice::api
