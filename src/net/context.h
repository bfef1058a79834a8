// What all connections of one server share. Kept alive by its sessions and exchanges as well as by the server, so that
// a responder which outlives the server still finds its executor. Thread-safe.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <shared_mutex>
#include <string_view>

#include "api/http.h"
#include "net/connections.h"
#include "net/server.h"

namespace coppice::net {

namespace asio = boost::asio;

// One connection's socket and timers run their callbacks on that connection's strand, and say so by type.
using Strand = asio::strand<asio::io_context::executor_type>;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Strand>;
using Timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Strand>;

class Context {
 public:
  Context(ServerOptions server_options, api::Handler& api_handler, obs::Metrics* server_metrics);

  // Runs `task` on `strand`; drops it after end_tasks(), when no thread is left to run it.
  void post(const Strand& strand, std::function<void()> task);
  void end_tasks();

  // The handler's answer to what is refused here; a plain one should the handler fail.
  api::HttpResponse refusal(int status, std::string_view message, std::string_view path) noexcept;

  void count_response(int status);
  void count_dropped_stream();
  void count_connection(int change);

  const ServerOptions options;
  api::Handler& handler;
  asio::io_context io;
  Connections connections;

 private:
  obs::Metrics* const metrics_;  // may be null
  std::shared_mutex gate_;       // guards ended_; held while posting, so that no task slips in after end_tasks()
  bool ended_ = false;
};

}  // namespace coppice::net
