// Streams, and clients that go away.
#include <prometheus/counter.h>

#include <atomic>
#include <thread>
#include <vector>

#include "net/client_test.h"

namespace coppice::net::testing {
namespace {

using Responder = std::shared_ptr<api::Responder>;

class StreamTest : public NetTest {
 protected:
  StreamTest() { hold("/hold", responders); }

  // Sends the request and returns what the handler got.
  Responder begin(Client& client, std::string_view request = "GET /hold HTTP/1.1\r\n\r\n") {
    EXPECT_TRUE(client.send(request));
    return responders.take();
  }

  Responders responders;
  Mailbox<bool> gone;
};

TEST_F(StreamTest, EachWriteReachesTheClientBeforeTheNext) {
  start();
  auto client = connect();
  const auto responder = begin(client);
  responder->start_stream("text/event-stream");
  EXPECT_TRUE(client.wait_for("\r\n\r\n"));  // headers come before there is anything to say
  EXPECT_TRUE(responder->write("data: one\n\n"));
  EXPECT_TRUE(client.wait_for("data: one"));
  EXPECT_TRUE(responder->write(""));  // must not end the stream
  EXPECT_TRUE(responder->write("data: two\n\n"));
  EXPECT_TRUE(client.wait_for("data: two"));
  responder->finish();
  const auto response = client.receive();
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(response.body, "data: one\n\ndata: two\n\n");
  EXPECT_EQ(client.get("/echo").status, 200);  // the connection lives on
}

TEST_F(StreamTest, SilentStreamIsKeptAliveUntilItEnds) {
  start();
  auto client = connect();
  const auto responder = begin(client);
  responder->start_stream("text/event-stream");
  responder->set_keepalive([] { return std::string(": ping\n\n"); }, std::chrono::seconds{1});
  responder->write("data: one\n\n");
  EXPECT_TRUE(client.wait_for("data: one\n\n"));
  EXPECT_TRUE(client.wait_for(": ping\n\n\r\n8\r\n: ping\n\n"));  // two in a row, each its own chunk
  responder->write("data: two\n\n");
  responder->finish();
  const auto response = client.receive();
  EXPECT_TRUE(response.complete);
  EXPECT_TRUE(response.body.starts_with("data: one\n\n: ping\n\n: ping\n\n")) << response.body;
  EXPECT_TRUE(response.body.ends_with("data: two\n\n")) << response.body;
  EXPECT_EQ(client.get("/echo").status, 200);
}

TEST_F(StreamTest, WritesFromOneTaskArriveCompleteAndInOrder) {
  std::string expected;
  for (int i = 0; i < 2000; ++i) expected += std::to_string(i) + "\n";
  handler.routes["/burst"] = [](api::HttpRequest, Responder responder) {
    responder->start_stream("text/plain");
    for (int i = 0; i < 2000; ++i) EXPECT_TRUE(responder->write(std::to_string(i) + "\n"));
    responder->finish();
  };
  start();
  auto client = connect();
  for (int round = 0; round < 3; ++round) {
    const auto response = client.get("/burst");
    EXPECT_TRUE(response.complete);
    EXPECT_EQ(response.body, expected);
  }
}

TEST_F(StreamTest, Http10StreamIsPlainAndEndsWithTheConnection) {
  start();
  auto client = connect();
  const auto responder = begin(client, "GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  responder->start_stream("text/plain");
  responder->write("one ");
  responder->write("two");
  responder->finish();
  const auto response = client.receive();
  EXPECT_FALSE(response.headers.contains("transfer-encoding"));
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_EQ(response.body, "one two");
}

TEST_F(StreamTest, HeadOfAStreamHasNoBody) {
  start();
  auto client = connect();
  const auto responder = begin(client, "HEAD /hold HTTP/1.1\r\n\r\n");
  responder->start_stream("text/plain");
  EXPECT_TRUE(responder->write("unseen"));
  responder->finish();
  EXPECT_EQ(client.receive(/*head_only=*/true).headers.at("content-type"), "text/plain");
  EXPECT_EQ(client.get("/echo").body, "GET /echo? ");
}

TEST_F(StreamTest, StreamWhoseHandlerThrowsIsCutOff) {
  handler.routes["/throw"] = [](api::HttpRequest, Responder responder) {
    responder->start_stream("text/plain");
    responder->write("begin");
    throw std::runtime_error("fails half way");
  };
  start();
  EXPECT_FALSE(connect().get("/throw").complete);
}

TEST_F(StreamTest, ClientThatClosesWhileItsAnswerIsPendingIsGone) {
  start();
  auto client = connect();
  const auto responder = begin(client);
  responder->on_gone([this] { gone.put(true); });
  client.close();
  EXPECT_TRUE(gone.take());
  responder->start_stream("text/plain");
  EXPECT_FALSE(responder->write("nobody listens"));
  responder->send({});
  responder->finish();
}

TEST_F(StreamTest, ClientThatOnlyHalfClosesIsGoneToo) {
  start();
  auto client = connect();
  const auto responder = begin(client);
  responder->on_gone([this] { gone.put(true); });
  client.half_close();
  EXPECT_TRUE(gone.take());
  EXPECT_EQ(client.receive_all(), "");
}

TEST_F(StreamTest, ClientThatResetsASilentStreamIsGone) {
  start();
  auto client = connect();
  const auto responder = begin(client);
  responder->on_gone([this] { gone.put(true); });
  responder->start_stream("text/plain");
  responder->write("begin");
  EXPECT_TRUE(client.wait_for("begin"));
  client.reset();
  EXPECT_TRUE(gone.take());
  EXPECT_FALSE(responder->write("more"));
}

TEST_F(StreamTest, ClientThatClosesBehindAPipelinedRequestIsGone) {
  start();
  auto client = connect();
  const auto responder = begin(client);
  responder->on_gone([this] { gone.put(true); });
  client.send("GET /echo HTTP/1.1\r\n\r\n");
  client.close();
  EXPECT_TRUE(gone.take());
}

TEST_F(StreamTest, CallbackSetAfterTheClientHasGoneStillRuns) {
  start();
  auto client = connect();
  const auto responder = begin(client);
  responder->on_gone([this] { gone.put(true); });
  client.close();
  EXPECT_TRUE(gone.take());
  responder->on_gone([this] { gone.put(true); });
  EXPECT_TRUE(gone.take());
}

TEST_F(StreamTest, CallbackNeverRunsOnceTheAnswerIsComplete) {
  start();
  std::atomic<int> calls = 0;
  Mailbox<bool> settled;
  for (int round = 0; round < 20; ++round) {
    auto client = connect();
    const auto responder = begin(client);
    responder->on_gone([&] { ++calls; });
    if (round % 2 == 0) {
      responder->send({});
    } else {
      responder->start_stream("text/plain");
      responder->finish();
    }
    client.reset();
    responder->on_gone([&] { ++calls; });
    responder->post([&] { settled.put(true); });
    EXPECT_TRUE(settled.take());
  }
  server_.reset();
  EXPECT_EQ(calls, 0);
}

TEST_F(StreamTest, ReaderThatLagsBeyondTheLimitIsDropped) {
  options.stream_buffer_bytes_max = 256 << 10;
  start();
  Client client(server_->port(), /*receive_buffer_bytes=*/4096);
  const auto responder = begin(client);
  responder->on_gone([this] { gone.put(true); });
  responder->start_stream("text/plain");
  const std::string bytes(16 << 10, 'x');
  int writes = 0;
  while (writes < 100'000 && responder->write(bytes)) ++writes;  // kernel buffers take some megabytes first
  EXPECT_LT(writes, 100'000);
  EXPECT_TRUE(gone.take());
  EXPECT_FALSE(responder->write("more"));
  EXPECT_TRUE(client.wait_until_reset());
  EXPECT_EQ(metrics.streams_dropped.Value(), 1);
  EXPECT_EQ(connect().get("/echo").status, 200);
}

TEST_F(StreamTest, ReaderThatTakesNothingForTooLongIsDropped) {
  options.write_timeout = std::chrono::milliseconds{50};
  start();
  Client client(server_->port(), /*receive_buffer_bytes=*/4096);
  begin(client)->send({.status = 200, .content_type = "text/plain", .headers = {}, .body = std::string(16 << 20, 'x')});
  EXPECT_TRUE(client.wait_until_reset());
  EXPECT_EQ(metrics.streams_dropped.Value(), 1);
}

TEST_F(StreamTest, TwoHundredStreamsAtOnceAllComplete) {
  constexpr int kClients = 200, kEvents = 20;
  std::mutex mutex;
  std::vector<Responder> streams;
  Mailbox<bool> all_here;
  handler.routes["/stream"] = [&](api::HttpRequest, Responder responder) {
    responder->start_stream("text/event-stream");
    std::lock_guard lock(mutex);
    streams.push_back(std::move(responder));
    if (streams.size() == kClients) all_here.put(true);
  };
  start();
  std::vector<Client> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(connect());
    clients.back().send("GET /stream HTTP/1.1\r\n\r\n");
  }
  ASSERT_TRUE(all_here.take());
  std::string expected;
  for (int event = 0; event < kEvents; ++event) {
    const std::string text = "data: " + std::to_string(event) + "\n\n";
    expected += text;
    for (const auto& stream : streams) EXPECT_TRUE(stream->write(text));
  }
  for (const auto& stream : streams) stream->finish();
  for (auto& client : clients) {
    const auto response = client.receive();
    EXPECT_TRUE(response.complete);
    EXPECT_EQ(response.body, expected);
  }
}

}  // namespace
}  // namespace coppice::net::testing
