// The HTTP/1.1 server: one listening address, a pool of threads, one session per connection.
//
// Ownership: app/ owns the server; the handler and the metrics must outlive it. Responders may outlive it: their calls
//   then do nothing.
// Threading: all methods are thread-safe, but stop() and the destructor wait for the server's threads and must not be
//   called from one of them. The handler is called from many threads at once, though never twice at a time for one
//   exchange.
// Invariants:
//   1. A handler that takes long, or never answers, holds up its own exchange and one thread, never another connection
//      while a thread is left.
//   2. Memory per connection is bounded: header, body, unsent stream bytes, and at most one request at a time.
//   3. Every exchange ends: with an answer, with on_gone, or (the handler threw, or dropped the responder without
//      answering) with status 500; a stream in that case is cut off without its last chunk.
//
// A client that closes its sending side while its request is being answered counts as gone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "api/http.h"
#include "base/error.h"

namespace coppice::obs {
class Metrics;
}

namespace coppice::net {

struct ServerOptions {
  std::string host = "127.0.0.1";  // an IPv4 or IPv6 address, or a name
  std::uint16_t port = 8080;       // 0: the system picks one
  unsigned threads = 4;            // at least 1
  std::size_t body_bytes_max = 64u << 20;
  std::uint32_t header_bytes_max = 64u << 10;        // request line and headers together
  std::size_t connections_max = 1024;                // one more is answered 503 and closed
  std::size_t stream_buffer_bytes_max = 4u << 20;    // unsent bytes of one stream; a client that lags more is dropped
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests
  std::chrono::milliseconds read_timeout{30'000};    // for a header; for a body it grows with the bytes that arrived
  std::chrono::milliseconds write_timeout{60'000};   // without the client taking a single byte
  std::chrono::milliseconds linger_timeout{10'000};  // for a refused client to read its answer while it still sends
};

class Server {
 public:
  // Binds and listens; clients may connect but are served only after start(). The error names what is wrong and the
  // option that helps. `metrics` may be null.
  static Result<std::unique_ptr<Server>> listen(ServerOptions options, api::Handler& handler, obs::Metrics* metrics);
  ~Server();  // stop() without grace

  std::uint16_t port() const;

  // REQUIRES: called once, before stop().
  void start();

  // Stops accepting, closes connections that have no exchange in progress, lets the others finish for up to `grace`,
  // then closes them too (on_gone runs). Returns when every socket is closed and every thread has ended.
  void stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace coppice::net
