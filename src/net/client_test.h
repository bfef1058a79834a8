// For the tests of net/: a client on a plain socket, which may misbehave in every way that TCP allows; a handler made
// of lambdas; a server on a free port.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/http.h"
#include "net/server.h"
#include "obs/metrics.h"

namespace coppice::net::testing {

// Only to turn a hang into a failure; no test is about how long something takes.
inline constexpr std::chrono::seconds kPatience{60};

struct Response {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
  bool complete = false;                       // all the bytes that its head promised have come
};

class Client {
 public:
  explicit Client(std::uint16_t port, int receive_buffer_bytes = 0, const char* address = "127.0.0.1");
  Client(Client&& other) noexcept : socket_(std::exchange(other.socket_, -1)), input_(std::move(other.input_)) {}
  ~Client() { close(); }

  bool send(std::string_view bytes);  // false: the server has closed
  Response receive(bool head_only = false);
  Response get(std::string_view path);

  // Waits until the input contains `text`; false at end of stream. Consumes nothing.
  bool wait_for(std::string_view text);
  std::string receive_all();  // until the server closes
  bool wait_until_reset();    // without reading

  void half_close();
  void close();
  void reset();  // closes with RST

 private:
  bool fill();  // one read; false at end of stream

  int socket_ = -1;
  std::string input_;
};

class TestHandler final : public api::Handler {
 public:
  using Route = std::function<void(api::HttpRequest, std::shared_ptr<api::Responder>)>;

  // Routes are added before the server starts.
  std::map<std::string, Route> routes;

  void handle(api::HttpRequest request, std::shared_ptr<api::Responder> responder) override;
  api::HttpResponse refuse(int status, std::string_view message, std::string_view path) override;
};

// A value that one thread leaves for another.
template <class T>
class Mailbox {
 public:
  void put(T value) {
    std::lock_guard lock(mutex_);
    value_ = std::move(value);
    arrived_.notify_all();
  }
  // A default T, and a failure, when none comes.
  T take() {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, kPatience, [this] { return value_.has_value(); })) {
      ADD_FAILURE() << "nothing arrived";
      return T{};
    }
    return *std::exchange(value_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::optional<T> value_;
};
using Responders = Mailbox<std::shared_ptr<api::Responder>>;

// Routes: /echo answers "METHOD path?query body"; tests add their own before start().
class NetTest : public ::testing::Test {
 protected:
  NetTest();
  void TearDown() override { server_.reset(); }  // before what the handler refers to
  void start();                                  // with `options`, on a free port
  Client connect() { return Client(server_->port()); }

  // A route whose responder waits in the returned mailbox's place.
  void hold(const std::string& path, Responders& responders);

  ServerOptions options;
  TestHandler handler;
  obs::Metrics metrics;
  std::unique_ptr<Server> server_;
};

}  // namespace coppice::net::testing
