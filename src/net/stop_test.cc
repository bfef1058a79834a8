// The server's own life: where it listens, how it stops, and responders that outlive it.
#include <filesystem>
#include <iterator>
#include <thread>

#include "net/client_test.h"

namespace coppice::net::testing {
namespace {

class StopTest : public NetTest {
 protected:
  StopTest() { hold("/hold", responders); }
  Responders responders;
  Mailbox<bool> gone;
};

TEST_F(StopTest, ListensOnNamesAndBothFamilies) {
  for (const char* host : {"localhost", "127.0.0.1", "0.0.0.0"}) {
    options.host = host;
    start();
    EXPECT_NE(server_->port(), 0);
    EXPECT_EQ(connect().get("/echo").status, 200) << host;
  }
  for (const char* host : {"::1", "[::1]"}) {
    options.host = host;
    auto server = Server::listen(options, handler, nullptr);
    if (!server) GTEST_SKIP() << "no IPv6 here: " << server.error().message;
    (*server)->start();
    EXPECT_EQ(Client((*server)->port(), 0, "::1").get("/echo").status, 200) << host;
  }
}

TEST_F(StopTest, ErrorsOfListeningSayWhatHelps) {
  start();
  options.port = server_->port();
  auto taken = Server::listen(options, handler, nullptr);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("127.0.0.1:" + std::to_string(options.port)), std::string::npos);
  EXPECT_NE(taken.error().message.find("in use"), std::string::npos);
  EXPECT_NE(taken.error().message.find("--port"), std::string::npos);

  options.port = 0;
  for (const char* host : {"no-such-host.invalid", "", "[", "203.0.113.7"}) {
    options.host = host;
    auto unknown = Server::listen(options, handler, nullptr);
    ASSERT_FALSE(unknown) << host;
    EXPECT_NE(unknown.error().message.find("--host"), std::string::npos) << unknown.error().message;
  }
}

TEST_F(StopTest, PortIsFreeAgainAtOnce) {
  start();
  auto client = connect();
  EXPECT_EQ(client.get("/echo").status, 200);
  options.port = server_->port();
  server_.reset();
  start();
  EXPECT_EQ(connect().get("/echo").status, 200);
}

TEST_F(StopTest, ServerThatNeverStartedStops) {
  auto server = Server::listen(options, handler, nullptr);
  ASSERT_TRUE(server);
  Client waiting((*server)->port());
  server->reset();
  EXPECT_EQ(waiting.receive_all(), "");
}

TEST_F(StopTest, IdleAndHalfReadConnectionsCloseAtOnce) {
  start();
  auto idle = connect(), half = connect();
  EXPECT_EQ(idle.get("/echo").status, 200);
  half.send("POST /echo HTTP/1.1\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(half.wait_for("100 Continue"));
  server_->stop(std::chrono::hours{1});  // must not need it
  EXPECT_EQ(idle.receive_all(), "");
}

TEST_F(StopTest, StreamMayFinishDuringTheGrace) {
  start();
  auto client = connect();
  client.send("GET /hold HTTP/1.1\r\n\r\n");
  const auto responder = responders.take();
  responder->on_gone([this] { gone.put(true); });
  responder->start_stream("text/plain");
  responder->write("before ");
  auto probe = connect();  // closed once the server has begun to stop
  std::thread stopper([this] { server_->stop(std::chrono::hours{1}); });
  while (probe.send("GET /echo HTTP/1.1\r\n\r\n") && probe.receive().complete) {
  }
  EXPECT_TRUE(responder->write("after"));
  responder->finish();
  const auto response = client.receive();
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(response.body, "before after");
  EXPECT_EQ(client.receive_all(), "");  // closed although it was keep-alive
  stopper.join();
}

TEST_F(StopTest, StreamThatDoesNotFinishIsCutOff) {
  start();
  auto client = connect();
  client.send("GET /hold HTTP/1.1\r\n\r\n");
  const auto responder = responders.take();
  responder->on_gone([this] { gone.put(true); });
  responder->start_stream("text/plain");
  EXPECT_TRUE(client.wait_for("\r\n\r\n"));
  server_->stop(std::chrono::milliseconds{0});
  EXPECT_TRUE(gone.take());
  EXPECT_FALSE(client.receive().complete);
  EXPECT_FALSE(responder->write("more"));
}

TEST_F(StopTest, ResponderMayOutliveTheServer) {
  start();
  auto client = connect();
  client.send("GET /hold HTTP/1.1\r\n\r\n");
  const auto responder = responders.take();
  server_.reset();
  responder->on_gone([] { FAIL(); });
  responder->post([] { FAIL(); });
  responder->start_stream("text/plain");
  EXPECT_FALSE(responder->write("more"));
  responder->finish();
  responder->send({});
}

#if defined(__SANITIZE_THREAD__)
constexpr std::ptrdiff_t kSanitizerThreads = 1;
#else
constexpr std::ptrdiff_t kSanitizerThreads = 0;
#endif

TEST_F(StopTest, LeavesNoDescriptorAndNoThreadBehind) {
  const auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  // A thread that was joined may be seen for a moment longer.
  const auto settles_at = [&](std::ptrdiff_t threads) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (count("/proc/self/task") != threads && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return count("/proc/self/task") == threads;
  };
  const auto descriptors = count("/proc/self/fd");
  options.connections_max = 3;
  start();
  {
    auto streaming = connect(), idle = connect(), partial = connect();
    streaming.send("GET /hold HTTP/1.1\r\n\r\n");
    const auto responder = responders.take();
    responder->start_stream("text/plain");
    EXPECT_EQ(idle.get("/echo").status, 200);
    partial.send("POST /echo HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_TRUE(partial.wait_for("100 Continue"));
    auto refused = connect();
    EXPECT_EQ(refused.receive().status, 503);
    server_->stop(std::chrono::milliseconds{0});
    server_.reset();
  }
  EXPECT_EQ(count("/proc/self/fd"), descriptors);
  EXPECT_TRUE(settles_at(kSanitizerThreads + 1));
}

TEST_F(StopTest, StoppingTwiceIsHarmless) {
  start();
  std::thread other([this] { server_->stop(std::chrono::milliseconds{0}); });
  server_->stop(std::chrono::milliseconds{0});
  other.join();
}

}  // namespace
}  // namespace coppice::net::testing
