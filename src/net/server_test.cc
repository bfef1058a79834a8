// Requests and answers that are not streams: what reaches the handler, what reaches the client, and in which order.
#include "net/server.h"

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "net/client_test.h"

namespace coppice::net::testing {
namespace {

using Responder = std::shared_ptr<api::Responder>;

TEST_F(NetTest, GetReachesTheHandlerAndItsAnswerTheClient) {
  start();
  auto client = connect();
  client.send("GET /%65cho?a=%41 HTTP/1.1\r\nHost: test\r\nX-TEST: first\r\nX-Test: last\r\n\r\n");
  const auto response = client.receive();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "GET /echo?a=%41 ");
  EXPECT_EQ(response.headers.at("content-type"), "text/plain");
  EXPECT_EQ(response.headers.at("x-seen"), "last");
  EXPECT_EQ(response.headers.at("connection"), "keep-alive");
}

TEST_F(NetTest, BodyArrivesWholeWithNulBytesAndInPieces) {
  start();
  auto client = connect();
  std::string body(300'000, 'b');
  body[7] = '\0';
  body[299'999] = '\n';
  client.send("POST /echo HTTP/1.1\r\nContent-Length: 300000\r\n\r\n");
  client.send(body.substr(0, 1));
  client.send(body.substr(1, 100'000));
  client.send(body.substr(100'001));
  EXPECT_EQ(client.receive().body, "POST /echo? " + body);
}

TEST_F(NetTest, ChunkedRequestBodyIsJoined) {
  start();
  auto client = connect();
  client.send("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.send("5;x=y\r\ndefgh\r\n0\r\nX-Trailer: t\r\n\r\n");
  EXPECT_EQ(client.receive().body, "POST /echo? abcdefgh");
  EXPECT_EQ(client.get("/echo").body, "GET /echo? ");
}

TEST_F(NetTest, ConnectionServesRequestAfterRequest) {
  start();
  auto client = connect();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(client.get("/echo?" + std::to_string(i)).body, "GET /echo?" + std::to_string(i) + " ");
}

TEST_F(NetTest, PipelinedRequestsInOneSegmentAreAnsweredInOrder) {
  start();
  auto client = connect();
  client.send(
      "POST /echo?1 HTTP/1.1\r\nContent-Length: 3\r\n\r\none"
      "GET /echo?2 HTTP/1.1\r\n\r\n"
      "POST /echo?3 HTTP/1.1\r\nContent-Length: 5\r\n\r\nthree");
  EXPECT_EQ(client.receive().body, "POST /echo?1 one");
  EXPECT_EQ(client.receive().body, "GET /echo?2 ");
  EXPECT_EQ(client.receive().body, "POST /echo?3 three");
}

TEST_F(NetTest, RequestSentWhileAnotherIsPendingWaitsForIt) {
  Responders responders;
  std::atomic<bool> gone = false, second_began = false;
  hold("/hold", responders);
  handler.routes["/second"] = [&](api::HttpRequest, Responder responder) {
    second_began = true;
    responder->send({.status = 200, .content_type = "text/plain", .headers = {}, .body = "second"});
  };
  start();
  auto client = connect();
  client.send("GET /hold HTTP/1.1\r\n\r\n");
  const auto responder = responders.take();
  responder->on_gone([&] { gone = true; });
  client.send("GET /second HTTP/1.1\r\n\r\n");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(connect().get("/echo").status, 200);  // time for the server to go wrong
  EXPECT_FALSE(second_began);
  responder->send({.status = 200, .content_type = "text/plain", .headers = {}, .body = "first"});
  EXPECT_EQ(client.receive().body, "first");
  EXPECT_EQ(client.receive().body, "second");
  EXPECT_FALSE(gone);
}

TEST_F(NetTest, HeadGetsTheHeadersOnly) {
  start();
  auto client = connect();
  client.send("HEAD /echo HTTP/1.1\r\n\r\nGET /echo HTTP/1.1\r\n\r\n");
  const auto head = client.receive(/*head_only=*/true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), std::to_string(std::string("HEAD /echo? ").size()));
  EXPECT_EQ(client.receive().body, "GET /echo? ");  // the very next bytes
}

TEST_F(NetTest, ConnectionCloseIsHonoured) {
  start();
  auto client = connect();
  client.send("GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n");
  const auto response = client.receive();
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_EQ(response.body, "GET /echo? ");
  EXPECT_EQ(client.receive_all(), "");
}

TEST_F(NetTest, Http10ClosesUnlessAskedToKeepAlive) {
  start();
  auto client = connect();
  client.send("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.receive().headers.at("connection"), "keep-alive");
  client.send("GET /echo HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.receive().headers.at("connection"), "close");
  EXPECT_EQ(client.receive_all(), "");
}

TEST_F(NetTest, ExpectContinueIsAnsweredBeforeTheBody) {
  start();
  auto client = connect();
  client.send("POST /echo HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive(/*head_only=*/true).status, 100);
  client.send("body");
  EXPECT_EQ(client.receive().body, "POST /echo? body");
}

TEST_F(NetTest, HandlerThatThrowsIsAnswered500) {
  handler.routes["/throw"] = [](api::HttpRequest, Responder) { throw std::runtime_error("secret"); };
  handler.routes["/throw-in-task"] = [](api::HttpRequest, Responder responder) {
    responder->post([responder] { throw 42; });
  };
  start();
  auto client = connect();
  for (const char* path : {"/throw", "/throw-in-task"}) {
    const auto response = client.get(path);
    EXPECT_EQ(response.status, 500) << path;
    EXPECT_EQ(response.body.find("secret"), std::string::npos);
  }
  EXPECT_EQ(client.get("/echo").status, 200);
}

TEST_F(NetTest, ForgottenResponderIsAnswered500) {
  handler.routes["/forget"] = [](api::HttpRequest, Responder) {};
  start();
  EXPECT_EQ(connect().get("/forget").status, 500);
}

TEST_F(NetTest, SecondAnswerIsIgnored) {
  handler.routes["/twice"] = [](api::HttpRequest, Responder responder) {
    responder->send({.status = 200, .content_type = "text/plain", .headers = {}, .body = "once"});
    responder->send({.status = 500, .content_type = "text/plain", .headers = {}, .body = "twice"});
    responder->start_stream("text/plain");
    EXPECT_FALSE(responder->write("x"));
    responder->finish();
  };
  start();
  auto client = connect();
  EXPECT_EQ(client.get("/twice").body, "once");
  EXPECT_EQ(client.get("/echo").body, "GET /echo? ");
}

TEST_F(NetTest, TasksOfAnExchangeRunInOrderAndNeverTwoAtOnce) {
  constexpr int kTasks = 1000;
  std::vector<int> order;  // no lock: that is the point
  handler.routes["/tasks"] = [&](api::HttpRequest, Responder responder) {
    for (int i = 0; i < kTasks; ++i) responder->post([&order, i] { order.push_back(i); });
    responder->post([responder] { responder->send({}); });
  };
  options.threads = 4;
  start();
  EXPECT_EQ(connect().get("/tasks").status, 200);
  ASSERT_EQ(order.size(), std::size_t{kTasks});
  for (int i = 0; i < kTasks; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_F(NetTest, HandlerThatBlocksHoldsUpNobodyElse) {
  std::latch release(1), entered(1);
  handler.routes["/block"] = [&](api::HttpRequest, Responder responder) {
    entered.count_down();
    release.wait();
    responder->send({});
  };
  start();
  auto blocked = connect();
  blocked.send("GET /block HTTP/1.1\r\n\r\n");
  entered.wait();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(connect().get("/echo").status, 200);
  release.count_down();
  EXPECT_EQ(blocked.receive().status, 200);
}

}  // namespace
}  // namespace coppice::net::testing
