#include "net/session.h"

#include <poll.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <cassert>

#include "net/http_text.h"

namespace coppice::net {
namespace http = boost::beast::http;
namespace {

constexpr std::size_t kReadBytesMax = 64 << 10;           // one read of a body, at most
constexpr std::size_t kBodyBytesPerSecondMin = 16 << 10;  // slower senders run into the body's deadline
constexpr std::size_t kDrainBytesMax = std::size_t{256} << 20;
constexpr std::chrono::milliseconds kWatchPause{200};

// The client has closed its side, or the connection broke. Unlike a read, this sees past bytes that were sent before.
bool peer_closed(int socket) {
  pollfd watched{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&watched, 1, 0) > 0;
}

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace

Session::Session(std::shared_ptr<Context> context, Socket socket)
    : context_(std::move(context)),
      socket_(std::move(socket)),
      deadline_(socket_.get_executor()),
      watch_pause_(socket_.get_executor()),
      keepalive_(socket_.get_executor()),
      buffer_(context_->options.header_bytes_max + kReadBytesMax) {
  context_->count_connection(+1);
}

Session::~Session() {
  // Normally done by close(); an exception on the strand may have ended the session without it.
  if (exchange_) exchange_->client_gone();
  context_->count_connection(-1);
  context_->connections.leave(this);
}

void Session::start(Admission admission) {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this(), admission] {
    ErrorCode ignored;
    self->socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    self->socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    switch (admission) {
      case Admission::serve: return self->next_request();
      case Admission::refuse: return self->refuse(503, "The server has reached its limit of open connections.");
      case Admission::drop: return self->close();
    }
  });
}

void Session::stop() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    switch (self->state_) {
      case State::idle:
      case State::head:
      case State::body: return self->close();
      case State::exchange:
      case State::refusal:
      case State::linger:
      case State::closed: return;
    }
  });
}

void Session::abort() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

// ---- Reading

void Session::next_request() {
  state_ = State::idle;
  request_read_ = false;
  parser_.reset();
  if (context_->connections.stopping()) return close();
  if (buffer_.size() > 0) return read_head();
  arm(context_->options.idle_timeout);
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](ErrorCode error) {
    if (self->state_ == State::closed) return;
    if (error) return self->close();
    self->read_head();
  });
}

void Session::read_head() {
  state_ = State::head;
  parser_.emplace();
  parser_->header_limit(context_->options.header_bytes_max);
  parser_->body_limit(context_->options.body_bytes_max);
  arm(context_->options.read_timeout);
  http::async_read_header(socket_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, std::size_t) {
    if (self->state_ != State::closed) self->on_head(error);
  });
}

void Session::on_head(ErrorCode error) {
  if (error) return on_read_failed(error);
  if (parser_->is_done()) return begin_exchange();
  state_ = State::body;
  parser_->eager(true);  // all that a read brings at once, not chunk by chunk
  body_bytes_ = 0;
  body_start_ = Timer::clock_type::now();
  arm(context_->options.read_timeout);
  if (expects_continue(*parser_)) return send_continue();
  read_body();
}

void Session::send_continue() {
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(socket_, asio::buffer(kContinue), [self = shared_from_this()](ErrorCode error, std::size_t) {
    if (self->state_ == State::closed) return;
    if (error) return self->on_read_failed(error);
    self->read_body();
  });
}

void Session::read_body() {
  http::async_read_some(socket_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, std::size_t bytes) {
    if (self->state_ != State::closed) self->on_body(error, bytes);
  });
}

void Session::on_body(ErrorCode error, std::size_t bytes) {
  if (error) return on_read_failed(error);
  if (parser_->is_done()) return begin_exchange();
  // A long body may take long, but not for ever: each byte that arrives buys a little time.
  body_bytes_ += bytes;
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Timer::clock_type::now() - body_start_);
  const std::chrono::milliseconds earned(body_bytes_ * 1000 / kBodyBytesPerSecondMin);
  arm(context_->options.read_timeout + earned - elapsed);
  read_body();
}

void Session::on_read_failed(ErrorCode error) {
  if (timed_out_) return refuse(408, "The request took too long to arrive.");
  const Refusal refusal = refusal_of(error, state_ == State::head, context_->options);
  if (refusal.status == 0) return close();
  refuse(refusal.status, refusal.message);
}

void Session::begin_exchange() {
  state_ = State::exchange;
  request_read_ = true;
  disarm();
  const auto& message = parser_->get();
  const Exchange::Facts facts{.head_only = message.method() == http::verb::head,
                              .http_1_0 = message.version() < 11,
                              .keep_alive = message.keep_alive(),
                              .path = std::string(path_of(message.target()))};
  auto request = to_request(*parser_);
  if (!request) return refuse(400, request.error().message);
  exchange_ = std::make_shared<Exchange>(context_, facts, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->wake();
  });
  watch();
  exchange_->post(
      [context = context_.get(), request = std::move(*request), responder = exchange_->responder()]() mutable {
        context->handler.handle(std::move(request), std::move(responder));
      });
}

// ---- Writing

void Session::refuse(int status, std::string_view message) {
  state_ = State::refusal;
  context_->count_response(status);
  const bool head_only = parser_ && parser_->is_header_done() && parser_->get().method() == http::verb::head;
  // The target is known before the header is done: what makes a body too large stands in a later line.
  const std::string_view path = parser_ ? path_of(parser_->get().target()) : std::string_view{};
  output_ = {.bytes = encode_response(context_->refusal(status, message, path), /*keep_alive=*/false, head_only),
             .last = true,
             .close = true};
  written_bytes_ = 0;
  write_some();
}

void Session::wake() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->pump(); });
}

void Session::pump() {
  if (state_ != State::exchange) return;
  if (exchange_->state() == Exchange::State::gone) return exchange_->too_slow() ? reset_connection() : close();
  if (!keepalive_scheduled_) schedule_keepalive();
  if (writing_) return;
  output_ = exchange_->take();
  written_bytes_ = 0;
  if (!output_.bytes.empty()) return write_some();
  if (output_.last) on_answered();
}

void Session::write_some() {
  writing_ = true;
  arm(context_->options.write_timeout);
  const auto rest = asio::buffer(output_.bytes) + written_bytes_;
  socket_.async_write_some(rest, [self = shared_from_this()](ErrorCode error, std::size_t bytes) {
    if (self->state_ != State::closed) self->on_written(error, bytes);
  });
}

void Session::on_written(ErrorCode error, std::size_t bytes) {
  writing_ = false;
  if (error) return close();
  written_bytes_ += bytes;
  if (written_bytes_ < output_.bytes.size()) return write_some();
  disarm();
  if (output_.last) return on_answered();
  pump();
}

void Session::on_answered() {
  const bool close_after = output_.close || context_->connections.stopping();
  exchange_.reset();
  keepalive_.cancel();
  keepalive_scheduled_ = false;
  output_ = {};
  if (close_after) return linger();
  next_request();
}

void Session::schedule_keepalive() {
  const auto due = exchange_->keepalive_due();
  keepalive_scheduled_ = due.has_value();
  if (!due) return;
  keepalive_.expires_at(*due);
  keepalive_.async_wait([self = shared_from_this(), exchange = exchange_](ErrorCode cancelled) {
    if (cancelled || self->exchange_ != exchange) return;
    exchange->keep_alive_if_silent();
    self->schedule_keepalive();
  });
}

// ---- Noticing that the client goes away

void Session::watch() {
  if (watching_) return;
  watching_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](ErrorCode error) {
    self->watching_ = false;
    self->on_readable(error);
  });
}

void Session::on_readable(ErrorCode error) {
  // The wait may have been begun for an earlier exchange. An answer that is complete only has to be written.
  if (state_ != State::exchange || exchange_->state() == Exchange::State::ended) return;
  if (error || peer_closed(socket_.native_handle())) return close();
  // A pipelined request. It stays in the kernel, where it costs nobody memory, and keeps the socket readable; so pause
  // before the next look.
  watch_pause_.expires_after(kWatchPause);
  watch_pause_.async_wait([self = shared_from_this()](ErrorCode cancelled) {
    if (!cancelled && self->state_ == State::exchange) self->watch();
  });
}

// ---- Ending

void Session::linger() {
  // Closing a socket that has unread bytes resets the connection, and the reset may overtake the answer.
  state_ = State::linger;
  disarm();
  parser_.reset();
  ErrorCode error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) return close();
  if (request_read_ && socket_.available(error) == 0) return close();
  arm(context_->options.linger_timeout);
  drain(0);
}

void Session::drain(std::size_t drained_bytes) {
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(kReadBytesMax),
                          [self = shared_from_this(), drained_bytes](ErrorCode error, std::size_t bytes) {
                            if (self->state_ == State::closed) return;
                            if (error || drained_bytes > kDrainBytesMax) return self->close();
                            self->drain(drained_bytes + bytes);
                          });
}

void Session::reset_connection() {
  // What the client has not read by now would otherwise stay in the kernel until TCP gives up.
  ErrorCode ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

void Session::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  if (exchange_) exchange_->client_gone();
  exchange_.reset();
  deadline_.cancel();
  watch_pause_.cancel();
  keepalive_.cancel();
  ErrorCode ignored;
  socket_.close(ignored);
}

// ---- The deadline of the pending read or write

void Session::arm(std::chrono::milliseconds timeout) {
  timed_out_ = false;
  deadline_.expires_after(timeout);
  deadline_.async_wait([self = shared_from_this()](ErrorCode cancelled) {
    // The second check is for a wait that ended just before the deadline moved.
    if (!cancelled && self->deadline_.expiry() <= std::chrono::steady_clock::now()) self->on_deadline();
  });
}

void Session::disarm() { deadline_.expires_at(Timer::time_point::max()); }

void Session::on_deadline() {
  switch (state_) {
    case State::idle:
    case State::linger: return close();
    case State::head:
    case State::body: {
      timed_out_ = true;  // the read ends with an error, and its callback answers
      ErrorCode ignored;
      socket_.cancel(ignored);
      return;
    }
    case State::exchange: exchange_->client_too_slow(); return reset_connection();
    case State::refusal: return reset_connection();
    case State::closed: return;
  }
}

}  // namespace coppice::net
