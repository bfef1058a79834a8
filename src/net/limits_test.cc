// What the server refuses by itself, and that the refusal reaches the client.
#include <prometheus/gauge.h>

#include <atomic>
#include <random>
#include <vector>

#include "net/client_test.h"

namespace coppice::net::testing {
namespace {

void expect_refusal(const Response& response, int status) {
  EXPECT_EQ(response.status, status);
  EXPECT_TRUE(response.complete);
  EXPECT_TRUE(response.body.starts_with(R"({"error":")")) << response.body;
  EXPECT_EQ(response.headers.at("connection"), "close");
}

TEST_F(NetTest, BodyOverTheLimitGetsItsAnswerAlthoughTheClientSendsItAll) {
  options.body_bytes_max = 1 << 20;
  start();
  for (int round = 0; round < 5; ++round) {
    auto client = connect();
    client.send("POST /echo HTTP/1.1\r\nContent-Length: 10485760\r\n\r\n");
    EXPECT_TRUE(client.send(std::string(10 << 20, 'x')));
    expect_refusal(client.receive(), 413);
    client.half_close();
    EXPECT_EQ(client.receive_all(), "");
  }
}

TEST_F(NetTest, BodyOfExactlyTheLimitIsServed) {
  options.body_bytes_max = 1000;
  start();
  auto client = connect();
  client.send("POST /echo HTTP/1.1\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x'));
  EXPECT_EQ(client.receive().status, 200);
  client.send("POST /echo HTTP/1.1\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'x'));
  expect_refusal(client.receive(), 413);
}

TEST_F(NetTest, ChunkedBodyOverTheLimitIsRefused) {
  options.body_bytes_max = 1000;
  start();
  auto client = connect();
  client.send("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 50; ++i) client.send("64\r\n" + std::string(100, 'x') + "\r\n");
  expect_refusal(client.receive(), 413);
}

TEST_F(NetTest, ARefusalKnowsThePathIfItCameThatFar) {
  options.body_bytes_max = 10;
  start();
  const auto path_of = [&](const std::string& request) {
    auto client = connect();
    client.send(request);
    return client.receive().headers.at("x-path");
  };
  EXPECT_EQ(path_of("POST /echo?a=/b HTTP/1.1\r\nContent-Length: 11\r\n\r\n"), "/echo");
  EXPECT_EQ(path_of("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n"), "/echo");
  EXPECT_EQ(path_of("nonsense\r\n\r\n"), "");
}

TEST_F(NetTest, ContinueIsNotGrantedToABodyOverTheLimit) {
  options.body_bytes_max = 10;
  start();
  auto client = connect();
  client.send("POST /echo HTTP/1.1\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n");
  expect_refusal(client.receive(), 413);
}

TEST_F(NetTest, HeadersOverTheLimitAreRefused) {
  options.header_bytes_max = 4096;
  start();
  auto client = connect();
  client.send("GET /echo HTTP/1.1\r\nX-Long: " + std::string(200'000, 'x') + "\r\n\r\n");
  expect_refusal(client.receive(), 431);
  auto many = connect();
  many.send("GET /echo HTTP/1.1\r\n");
  for (int i = 0; i < 1000; ++i) many.send("X-" + std::to_string(i) + ": y\r\n");
  many.send("\r\n");
  expect_refusal(many.receive(), 431);
  auto long_target = connect();
  long_target.send("GET /" + std::string(5000, 'x') + " HTTP/1.1\r\n\r\n");
  expect_refusal(long_target.receive(), 431);
}

TEST_F(NetTest, MalformedRequestsAreRefused) {
  start();
  const std::vector<std::string> requests = {
      "nonsense\r\n\r\n",
      std::string("\0\0\0\0\r\n\r\n", 8),
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  // a TLS hello
      "GET /echo HTTP/3.0\r\n\r\n",
      "GET  /echo HTTP/1.1\r\n\r\n",
      "GET /echo HTTP/1.1\r\nno colon\r\n\r\n",
      "GET /%zz HTTP/1.1\r\n\r\n",
      "GET /a%00b HTTP/1.1\r\n\r\n",
      "GET echo HTTP/1.1\r\n\r\n",
      "POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      "POST /echo HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
      "POST /echo HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
      "POST /echo HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
  };
  for (const auto& request : requests) {
    SCOPED_TRACE(request);
    auto client = connect();
    client.send(request);
    expect_refusal(client.receive(), 400);
  }
}

TEST_F(NetTest, RequestThatEndsEarlyIsRefusedAndHandledByNobody) {
  std::atomic<int> calls = 0;
  handler.routes["/count"] = [&](api::HttpRequest, std::shared_ptr<api::Responder> responder) {
    ++calls;
    responder->send({});
  };
  start();
  for (const char* request :
       {"POST /count HTTP/1.1\r\nContent-Le", "POST /count HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
        "POST /count HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"}) {
    auto client = connect();
    client.send(request);
    client.half_close();
    expect_refusal(client.receive(), 400);
    auto rude = connect();
    rude.send(request);
    rude.reset();
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(NetTest, SlowHeadAndSlowBodyTimeOut) {
  options.read_timeout = std::chrono::milliseconds{20};
  start();
  for (const char* request : {"GET /echo HT", "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"}) {
    auto client = connect();
    client.send(request);
    expect_refusal(client.receive(), 408);
  }
}

TEST_F(NetTest, SilentConnectionIsClosedWithoutAWord) {
  options.idle_timeout = std::chrono::milliseconds{20};
  start();
  auto client = connect();
  EXPECT_EQ(client.receive_all(), "");
}

TEST_F(NetTest, ConnectionOverTheLimitIsAnswered503) {
  options.connections_max = 2;
  start();
  auto first = connect(), second = connect();
  EXPECT_EQ(first.get("/echo").status, 200);
  EXPECT_EQ(second.get("/echo").status, 200);
  EXPECT_EQ(metrics.connections_open.Value(), 2);
  for (int i = 0; i < 100; ++i) {  // more than the refusals that may be open at once
    auto third = connect();
    expect_refusal(third.get("/echo"), 503);
  }
  EXPECT_EQ(second.get("/echo").status, 200);
  first.close();
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  int status = 503;
  while (status == 503 && std::chrono::steady_clock::now() < give_up) status = connect().get("/echo").status;
  EXPECT_EQ(status, 200);
}

TEST_F(NetTest, NoBytesWhateverStopTheServer) {
  options.header_bytes_max = 2000;
  options.body_bytes_max = 2000;
  start();
  const std::vector<std::string> seeds = {
      "GET /echo?x=%20 HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
      "POST /echo HTTP/1.1\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\nhello world",
      "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nT: x\r\n\r\n",
  };
  std::mt19937 random(20240607);
  const auto below = [&random](std::size_t n) { return random() % n; };
  for (int round = 0; round < 500; ++round) {
    std::string bytes = seeds[below(seeds.size())] + seeds[below(seeds.size())];
    for (std::size_t edits = below(6); edits > 0; --edits) {
      const std::size_t at = below(bytes.size());
      switch (below(4)) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, below(8)); break;
        case 2: bytes.insert(at, below(4) == 0 ? 3000 : 3, static_cast<char>(random())); break;
        case 3: bytes.insert(at, bytes.substr(below(bytes.size()), 20)); break;
      }
      if (bytes.empty()) bytes.push_back('x');
    }
    auto client = connect();
    client.send(bytes);
    client.half_close();
    const auto answer = client.receive_all();
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 ")) << answer;
  }
  EXPECT_EQ(connect().get("/echo").status, 200);
}

}  // namespace
}  // namespace coppice::net::testing
