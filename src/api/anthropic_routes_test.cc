#include "api/anthropic_routes.h"

#include <gtest/gtest.h>

#include "api/anthropic_test_support.h"

namespace coppice::api {
namespace {

void expect_error(const FakeResponder& answer, int status, const char* type) {
  EXPECT_EQ(answer.response.status, status) << answer.response.body;
  const Json json = answer.json();
  EXPECT_EQ(json["type"], "error");
  EXPECT_EQ(json["error"]["type"], type);
  EXPECT_TRUE(json["error"]["message"].is_string());
  EXPECT_EQ(json.size(), 2U) << json;
  EXPECT_EQ(json["error"].size(), 2U) << json;
}

TEST(AnthropicRoutes, ErrorsHaveAnthropicsShape) {
  FakeServer server;
  server.api_keys = {"k"};
  const auto post = [&](std::string path, std::string body, const char* key) {
    return server.post(std::move(path), std::move(body), {{"x-api-key", key}});
  };
  expect_error(*post("/v1/messages", "{", "k"), 400, "invalid_request_error");
  expect_error(*post("/v1/messages", "{}", "k"), 400, "invalid_request_error");
  expect_error(*post("/v1/messages", message_with(R"("temperature":"hot")"), "k"), 400, "invalid_request_error");
  expect_error(*post("/v1/messages", message_with(""), "wrong"), 401, "authentication_error");
  expect_error(*post("/v1/messages/count_tokens", "{}", ""), 401, "authentication_error");
  expect_error(*post("/v1/messages/count_tokens", "[]", "k"), 400, "invalid_request_error");
  expect_error(*post("/v1/messages/batches", "{}", "k"), 404, "not_found_error");
  expect_error(*server.request({.method = "GET", .path = "/v1/messages", .headers = {{"x-api-key", "k"}}}), 405,
               "invalid_request_error");
  expect_error(*post("/api/hello", "{}", "k"), 405, "invalid_request_error");
  EXPECT_TRUE(server.engine.requests.empty());
}

TEST(AnthropicRoutes, RefusalsOfTheHttpLayerAndTheEngine) {
  FakeServer server;
  server.get("/health");
  const std::pair<int, const char*> cases[] = {{400, "invalid_request_error"},
                                               {408, "invalid_request_error"},
                                               {413, "request_too_large"},
                                               {429, "rate_limit_error"},
                                               {500, "api_error"},
                                               {503, "overloaded_error"}};
  for (const auto& [status, type] : cases) {
    const HttpResponse response = server.router->refuse(status, "no", "/v1/messages");
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(Json::parse(response.body).dump(),
              R"({"type":"error","error":{"type":")" + std::string(type) + R"(","message":"no"}})");
  }
  EXPECT_FALSE(Json::parse(server.router->refuse(413, "no", "/v1/messagesx").body).contains("type"));

  server.engine.errors[0] = {ErrorKind::overloaded, "queue full", ""};
  auto answer = post_message(server, R"("stream":true)");
  expect_error(*answer, 503, "overloaded_error");
  EXPECT_EQ(answer->stream_type, "");
}

TEST(AnthropicRoutes, TooLongSaysSoInBothPhrases) {
  FakeServer server;
  const std::string body =
      R"({"max_tokens":9,"messages":[{"role":"user","content":")" + std::string(200, 'x') + R"("}]})";
  auto answer = server.post("/v1/messages", body);
  expect_error(*answer, 400, "invalid_request_error");
  const std::string message = answer->json()["error"]["message"];
  EXPECT_NE(message.find("prompt is too long: 207 tokens > 128 maximum"), std::string::npos) << message;
  EXPECT_NE(message.find("maximum context length is 128 tokens"), std::string::npos) << message;
  // The count is told all the same.
  EXPECT_EQ(server.post("/v1/messages/count_tokens", body)->json()["input_tokens"], 207);
}

TEST(AnthropicRoutes, CountTokens) {
  FakeServer server;
  const auto count = [&](const char* fields) {
    return server
        .post("/v1/messages/count_tokens",
              R"({"messages":[{"role":"user","content":"hi"}])" + std::string(fields) + "}")
        ->response.body;
  };
  EXPECT_EQ(count(""), R"({"input_tokens":9})");  // BOS, "user:hi", newline
  EXPECT_EQ(count(R"(,"system":[{"type":"text","text":"x-anthropic-a: 1"},{"type":"text","text":"S"}])"),
            R"({"input_tokens":18})");
  EXPECT_TRUE(server.engine.requests.empty());
}

TEST(AnthropicRoutes, Hello) {
  FakeServer server;
  server.api_keys = {"k"};
  EXPECT_EQ(server.request({.method = "HEAD", .path = "/api/hello"})->response.status, 200);
  EXPECT_EQ(server.get("/api/hello")->response.status, 200);
}

TEST(AnthropicRoutes, ModelsHaveBothShapes) {
  FakeServer server;
  server.model.aliases = {"org/alias"};
  const Json list = server.get("/v1/models")->json();
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["has_more"], false);
  EXPECT_EQ(list["first_id"], "test-model");
  EXPECT_EQ(list["last_id"], "test-model");
  const Json& model = list["data"][0];
  EXPECT_EQ(model["object"], "model");
  EXPECT_EQ(model["created"], 77);
  EXPECT_EQ(model["type"], "model");
  EXPECT_EQ(model["display_name"], "test-model");
  EXPECT_EQ(model["created_at"], "1970-01-01T00:01:17Z");
  EXPECT_EQ(server.get("/v1/models/test-model")->json(), model);
  EXPECT_EQ(server.get("/v1/models/org/alias")->json(), model);

  const HttpRequest unknown{.method = "GET", .path = "/v1/models/other"};
  EXPECT_EQ(server.request(unknown)->json()["error"]["type"], "not_found_error");
  EXPECT_FALSE(server.request(unknown)->json().contains("type"));
  HttpRequest anthropic = unknown;
  anthropic.headers["anthropic-version"] = "2023-06-01";
  expect_error(*server.request(anthropic), 404, "not_found_error");
}

TEST(AnthropicRoutes, QueryAndUnknownFieldsAreIgnored) {
  FakeServer server;
  auto answer = server.request({.method = "POST",
                                .path = "/v1/messages",
                                .query = "beta=true",
                                .headers = {{"anthropic-beta", "some-feature"}, {"x-session-id", "h"}},
                                .body = message_with(R"("context_management":{"edits":[]},"betas":["x"],"n":5)")});
  ASSERT_EQ(server.engine.requests.size(), 1U);
  EXPECT_EQ(server.engine.requests[0].n_predict, 9);
  EXPECT_EQ(server.engine.requests[0].placement.session, "h");
}

TEST(AnthropicRoutes, ExplainReadsMessagesToo) {
  FakeServer server;
  const std::string body = R"({"system":"S","messages":[{"role":"user","content":"hi"}]})";
  auto answer = server.post("/v1/explain", body, {{"anthropic-version", "2023-06-01"}});
  EXPECT_EQ(answer->response.status, 200) << answer->response.body;
  ASSERT_EQ(server.engine.inspector.asked.size(), 1U);
  EXPECT_EQ(server.engine.inspector.asked[0].first, server.tokenizer.tokenize("system:S\nuser:hi\n", true, true));
}

// ---- What has changed since an earlier request

struct Diagnostics : testing::Test {
  FakeServer server;

  // The message that answers `body`.
  Json answer(Json body, const std::string& salt = "") {
    const std::size_t i = server.engine.requests.size();
    body["max_tokens"] = 5;
    if (!salt.empty()) body["cache_salt"] = salt;
    auto responder = server.post("/v1/messages", body.dump());
    EXPECT_EQ(responder->response.body, "");
    server.engine.finish(i);
    responder->run();
    if (responder->stream_type.empty()) return responder->json();
    return events_of(*responder)[0]["message"];
  }
  static Json first() {
    return Json::parse(R"({"model":"m","system":"S","tools":[{"name":"ls","input_schema":{"type":"object"}}],
                           "messages":[{"role":"user","content":"one"}]})");
  }
  static Json next(const Json& before, Json body = first()) {
    body["diagnostics"] = {{"previous_message_id", before["id"]}};
    body["messages"].push_back({{"role", "assistant"}, {"content", "1"}});
    body["messages"].push_back({{"role", "user"}, {"content", "two"}});
    return body;
  }
};

TEST_F(Diagnostics, A14_ReasonsInAnthropicsWords) {
  const Json before = answer(first());
  EXPECT_FALSE(before.contains("diagnostics"));
  EXPECT_EQ(answer(next(before)).value("diagnostics", Json("none")), nullptr);

  const std::pair<const char*, const char*> cases[] = {
      {R"({"model":"n"})", "model_changed"},
      {R"({"system":"T"})", "system_changed"},
      {R"({"tools":[]})", "tools_changed"},
      {R"({"messages":[{"role":"user","content":"uno"}]})", "messages_changed"},
      {R"({"tool_choice":{"type":"any"}})", "unavailable"},
  };
  for (const auto& [patch, type] : cases) {
    Json changed = first();
    changed.merge_patch(Json::parse(patch));
    const Json reason = answer(next(before, changed))["diagnostics"]["cache_miss_reason"];
    EXPECT_EQ(reason["type"], type);
    EXPECT_EQ(reason.contains("cache_missed_input_tokens"), std::string(type) != "unavailable") << reason;
  }
}

TEST_F(Diagnostics, MarksAndFormsAreNoChange) {
  const Json before = answer(first());
  Json marked = next(before);
  marked["system"] = Json::parse(R"([{"type":"text","text":"x-anthropic-billing-header: v=2"},
                                     {"type":"text","text":"S","cache_control":{"type":"ephemeral"}}])");
  marked["tools"][0]["cache_control"] = {{"type", "ephemeral"}};
  marked["messages"][0]["content"] =
      Json::parse(R"([{"type":"text","text":"one","cache_control":{"type":"ephemeral"}}])");
  EXPECT_EQ(answer(marked).value("diagnostics", Json("none")), nullptr);
}

TEST_F(Diagnostics, UnknownMessages) {
  const auto reason = [](const Json& message) { return message["diagnostics"]["cache_miss_reason"]["type"]; };
  const Json before = answer(first(), "mine");
  EXPECT_EQ(reason(answer(next(before), "theirs")), "previous_message_not_found");
  EXPECT_EQ(answer(next(before), "mine")["diagnostics"], nullptr);
  EXPECT_EQ(reason(answer(next({{"id", "msg_unknown"}}))), "previous_message_not_found");
  Json opted_in = first();
  opted_in["diagnostics"] = {{"previous_message_id", nullptr}};
  EXPECT_EQ(answer(opted_in).value("diagnostics", Json("none")), nullptr);
}

TEST_F(Diagnostics, InAStreamTheyComeWithTheStart) {
  Json body = next({{"id", "msg_unknown"}});
  body["stream"] = true;
  EXPECT_EQ(answer(body)["diagnostics"].dump(), R"({"cache_miss_reason":{"type":"previous_message_not_found"}})");
}

TEST_F(Diagnostics, WrongOnesAreRefused) {
  expect_error(*post_message(server, R"("diagnostics":5)"), 400, "invalid_request_error");
  expect_error(*post_message(server, R"("diagnostics":{"previous_message_id":5})"), 400, "invalid_request_error");
}

}  // namespace
}  // namespace coppice::api
