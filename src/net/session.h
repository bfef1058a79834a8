// One connection: reads requests one after another, hands each to the handler as an Exchange, writes what it answers,
// and notices when the client goes away.
//
// Ownership: by its own pending socket and timer operations; it ends when the last of them has ended.
// Threading: start(), stop(), abort() and wake() from any thread; all else runs on the connection's strand.
//
//   state    | waits for                              | leaves to
//   ---------+----------------------------------------+----------------------------------------------------------------
//   idle     | the first byte of a request            | head; closed (end of stream, idle timeout, stop)
//   head     | the rest of its head                   | body, exchange; refusal (bad, too large, slow); closed (stop)
//   body     | its body                               | exchange; refusal (bad, too large, slow); closed (stop)
//   exchange | output of the handler, then the socket | idle; linger; closed (client gone or too slow, abort)
//   refusal  | the socket                             | linger; closed (client gone or too slow, abort)
//   linger   | the client to read the answer and close| closed
//   closed   | its operations to end                  |
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "net/connections.h"
#include "net/context.h"
#include "net/exchange.h"
#include "net/request_parser.h"

namespace coppice::net {

class Session final : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Context> context, Socket socket);
  ~Session();

  void start(Admission admission);  // called once
  void stop();                      // closes unless an answer is on its way
  void abort();                     // closes

 private:
  using ErrorCode = boost::system::error_code;
  enum class State : std::uint8_t { idle, head, body, exchange, refusal, linger, closed };

  // Reading.
  void next_request();
  void read_head();
  void on_head(ErrorCode error);
  void send_continue();
  void read_body();
  void on_body(ErrorCode error, std::size_t bytes);
  void on_read_failed(ErrorCode error);
  void begin_exchange();

  // Writing.
  void wake();  // from any thread: pump()
  void refuse(int status, std::string_view message);
  void pump();
  void write_some();
  void on_written(ErrorCode error, std::size_t bytes);
  void on_answered();

  void schedule_keepalive();

  // Noticing that the client goes away while nothing is read or written.
  void watch();
  void on_readable(ErrorCode error);

  // Ending.
  void linger();
  void drain(std::size_t drained_bytes);
  void reset_connection();
  void close();

  void arm(std::chrono::milliseconds timeout);
  void disarm();
  void on_deadline();

  const std::shared_ptr<Context> context_;  // first: socket and timers need it to the end
  Socket socket_;
  Timer deadline_;     // of the state's pending read or write
  Timer watch_pause_;  // see on_readable()
  Timer keepalive_;    // of a silent stream
  boost::beast::flat_buffer buffer_;
  std::optional<RequestParser> parser_;
  std::shared_ptr<Exchange> exchange_;
  Exchange::Output output_;
  std::size_t written_bytes_ = 0;  // of output_
  std::size_t body_bytes_ = 0;     // that arrived since body_start_
  Timer::time_point body_start_;
  State state_ = State::idle;
  bool request_read_ = false;  // to its last byte
  bool timed_out_ = false;
  bool writing_ = false;
  bool watching_ = false;
  bool keepalive_scheduled_ = false;  // for exchange_
};

}  // namespace coppice::net
