#include "net/server.h"

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <cassert>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "net/context.h"
#include "net/session.h"
#include "obs/log.h"

namespace coppice::net {
namespace {

using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using Acceptor = asio::basic_socket_acceptor<tcp, Strand>;

constexpr std::chrono::milliseconds kAcceptPause{100};

std::string place(const ServerOptions& options) {
  const bool is_v6 = options.host.find(':') != std::string::npos && !options.host.starts_with('[');
  return (is_v6 ? "[" + options.host + "]" : options.host) + ":" + std::to_string(options.port);
}

std::unexpected<Error> listen_error(const ServerOptions& options, ErrorCode error) {
  const std::string what = "Cannot listen on " + place(options) + ": ";
  if (error == asio::error::address_in_use) {
    return fail(ErrorKind::unavailable,
                what + "the port is in use. Stop the program that uses it or choose another with --port.", "port");
  }
  if (error == asio::error::access_denied) {
    return invalid(what + "the system does not allow this port. Choose one above 1023 with --port.", "port");
  }
  if (error.value() == EADDRNOTAVAIL) {
    return invalid(what + "this machine does not have that address. Use --host 127.0.0.1, or --host 0.0.0.0 for all.",
                   "host");
  }
  return fail(ErrorKind::unavailable, what + error.message() + ".", "host");
}

Result<tcp::endpoint> resolve(asio::io_context& io, const ServerOptions& options) {
  std::string host = options.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  ErrorCode error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return tcp::endpoint(address, options.port);
  const auto unknown = invalid("The host '" + options.host +
                                   "' is not known. Use an address or a name of this machine with --host, such as "
                                   "127.0.0.1.",
                               "host");
  if (host.empty()) return unknown;
  const auto found = tcp::resolver(io).resolve(host, std::to_string(options.port), tcp::resolver::passive, error);
  if (error || found.empty()) return unknown;
  // "localhost" is often both; clients try 127.0.0.1 far more often than ::1.
  for (const auto& entry : found) {
    if (entry.endpoint().address().is_v4()) return entry.endpoint();
  }
  return found.begin()->endpoint();
}

}  // namespace

class Server::Impl {
 public:
  Impl(std::shared_ptr<Context> context, Acceptor acceptor)
      : context_(std::move(context)),
        acceptor_(std::move(acceptor)),
        accept_pause_(acceptor_.get_executor()),
        work_(context_->io.get_executor()) {}

  std::uint16_t port() const { return port_; }

  static Result<std::unique_ptr<Impl>> listen(std::shared_ptr<Context> context) {
    const auto endpoint = resolve(context->io, context->options);
    if (!endpoint) return std::unexpected(endpoint.error());
    Acceptor acceptor(Strand(context->io.get_executor()));
    ErrorCode error;
    acceptor.open(endpoint->protocol(), error);
    if (!error) acceptor.set_option(Acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(*endpoint, error);
    if (!error) acceptor.listen(Acceptor::max_listen_connections, error);
    if (error) return listen_error(context->options, error);
    auto impl = std::make_unique<Impl>(std::move(context), std::move(acceptor));
    impl->port_ = impl->acceptor_.local_endpoint(error).port();
    return impl;
  }

  void start() {
    assert(threads_.empty());
    asio::post(acceptor_.get_executor(), [this] { accept(); });
    const unsigned threads = std::max(1u, context_->options.threads);
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }

  void stop(std::chrono::milliseconds grace) {
    std::lock_guard lock(stop_mutex_);
    if (!work_) return;
    auto& connections = context_->connections;
    connections.stop_admitting();
    if (!threads_.empty()) asio::post(acceptor_.get_executor(), [this] { close_acceptor(); });
    for (const auto& session : connections.all()) session->stop();
    if (!connections.wait_until_none(grace)) {
      for (const auto& session : connections.all()) session->abort();
      connections.wait_until_none();
    }
    context_->end_tasks();
    work_.reset();
    threads_.clear();  // each ends when all that was posted has run
    close_acceptor();
  }

 private:
  void run() {
    for (;;) {
      // A callback that throws (memory is exhausted) ends its own connection; the others go on.
      try {
        context_->io.run();
        return;
      } catch (const std::exception& error) {
        obs::log_error("connection failed", "error={}", error.what());
      } catch (...) {
        obs::log_error("connection failed", "error=unknown");
      }
    }
  }

  void accept() {
    acceptor_.async_accept(Strand(context_->io.get_executor()), [this](ErrorCode error, Socket socket) {
      if (!acceptor_.is_open() || context_->connections.stopping()) return;
      if (error) return pause_accepting(error);
      accept();  // first, as what follows may throw when memory is short
      auto session = std::make_shared<Session>(context_, std::move(socket));
      session->start(context_->connections.admit(session));
    });
  }

  void pause_accepting(ErrorCode error) {
    // Out of file descriptors, most likely. They come back as connections end; trying again at once would only spin.
    obs::log_warn("accept failed", "error=\"{}\" retry_ms={}", error.message(), kAcceptPause.count());
    accept_pause_.expires_after(kAcceptPause);
    accept_pause_.async_wait([this](ErrorCode cancelled) {
      if (!cancelled && acceptor_.is_open()) accept();
    });
  }

  void close_acceptor() {
    ErrorCode ignored;
    acceptor_.close(ignored);
    accept_pause_.cancel();
  }

  const std::shared_ptr<Context> context_;  // first: the acceptor needs it to the end
  Acceptor acceptor_;
  Timer accept_pause_;
  std::uint16_t port_ = 0;
  std::mutex stop_mutex_;  // guards work_ and threads_ against two stops at once
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;  // empty: stopped
  std::vector<std::jthread> threads_;
};

Result<std::unique_ptr<Server>> Server::listen(ServerOptions options, api::Handler& handler, obs::Metrics* metrics) {
  auto impl = Impl::listen(std::make_shared<Context>(std::move(options), handler, metrics));
  if (!impl) return std::unexpected(impl.error());
  return std::unique_ptr<Server>(new Server(std::move(*impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { impl_->stop(std::chrono::milliseconds{0}); }

std::uint16_t Server::port() const { return impl_->port(); }
void Server::start() { impl_->start(); }
void Server::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }

}  // namespace coppice::net
