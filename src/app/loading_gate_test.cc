#include "app/loading_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coppice::app {
namespace {

struct FakeResponder final : api::Responder {
  void send(api::HttpResponse response) override { sent.push_back(std::move(response)); }
  void start_stream(std::string) override {}
  bool write(std::string) override { return false; }
  void finish() override {}
  void post(std::function<void()> task) override { task(); }
  void on_gone(std::function<void()>) override {}
  std::vector<api::HttpResponse> sent;
};

struct Echo final : api::Handler {
  void handle(api::HttpRequest request, std::shared_ptr<api::Responder> responder) override {
    api::HttpResponse response;
    response.body = request.path;
    responder->send(std::move(response));
  }
  api::HttpResponse refuse(int, std::string_view, std::string_view) override {
    api::HttpResponse response;
    response.status = 499;
    return response;
  }
};

TEST(LoadingGate, IsUnavailableUntilItOpens) {
  LoadingGate gate;
  auto responder = std::make_shared<FakeResponder>();
  gate.handle({.method = "GET", .path = "/health", .query = {}, .headers = {}, .body = {}}, responder);
  ASSERT_EQ(responder->sent.size(), 1U);
  EXPECT_EQ(responder->sent[0].status, 503);
  EXPECT_THAT(responder->sent[0].body, testing::HasSubstr("Loading model"));
  EXPECT_EQ(gate.refuse(413, "too large", "").status, 413);

  Echo echo;
  gate.open(echo);
  gate.handle({.method = "GET", .path = "/health", .query = {}, .headers = {}, .body = {}}, responder);
  ASSERT_EQ(responder->sent.size(), 2U);
  EXPECT_EQ(responder->sent[1].body, "/health");
  EXPECT_EQ(gate.refuse(413, "too large", "/x").status, 499);
}

}  // namespace
}  // namespace coppice::app
