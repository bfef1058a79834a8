// One request and its answer: the Responder that handlers hold, and the bytes that the session fetches from it.
//
// Ownership: shared by the session and, through responder(), by whoever the handler gives it to.
// Threading: thread-safe. Tasks (post(), on_gone) run one at a time on the exchange's own strand, which is not the
//   session's: a long task never delays the bytes of its own stream.
//
//   state      | send()  | start_stream() | write()      | finish() | client_gone()
//   -----------+---------+----------------+--------------+----------+--------------
//   open       | ended   | streaming      | -            | -        | gone
//   streaming  | -       | -              | bytes queued | ended    | gone
//   ended      | -       | -              | -            | -        | -
//   gone       | -       | -              | -            | -        | -
//
// "-" does nothing. on_gone fires on the way into gone. A write over the limit goes to gone by itself, and so does a
// stream whose handler throws or drops its responder; open then sends status 500.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "api/http.h"
#include "net/context.h"

namespace coppice::net {

class Exchange final : public api::Responder, public std::enable_shared_from_this<Exchange> {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class State : std::uint8_t { open, streaming, ended, gone };

  struct Facts {
    bool head_only = false;  // the answer has no body (HEAD)
    bool http_1_0 = false;   // no chunks: a stream ends with the connection
    bool keep_alive = true;  // the client's wish
    std::string path;        // as it came
  };

  struct Output {
    std::string bytes;
    bool last = false;   // nothing comes after these bytes
    bool close = false;  // the connection cannot be used again; known when `last`
  };

  // `wake` tells the session that take() or state() may have news; called from any thread, must not block.
  Exchange(std::shared_ptr<Context> context, Facts facts, std::function<void()> wake);

  // For the handler. When the last copy goes without an answer, the client gets status 500 instead of waiting for ever.
  std::shared_ptr<api::Responder> responder();

  // For the session. take(): all that is ready, in one piece; the bytes taken before are then known to be written.
  State state() const;
  bool too_slow() const;
  Output take();
  void client_gone();
  void client_too_slow();

  // For the session, which owns the timer: when to call keep_alive_if_silent() next; never if empty.
  std::optional<TimePoint> keepalive_due() const;
  void keep_alive_if_silent();

  void send(api::HttpResponse response) override;
  void start_stream(std::string content_type) override;
  bool write(std::string bytes) override;
  void finish() override;
  void set_keepalive(std::function<std::string()> make, std::chrono::seconds interval) override;
  void post(std::function<void()> task) override;
  void on_gone(std::function<void()> callback) override;

 private:
  bool chunked() const { return !facts_.http_1_0 && !facts_.head_only; }
  void run(const std::function<void()>& task);
  void give_up();  // ends an unanswered exchange that nobody will answer any more

  const std::shared_ptr<Context> context_;  // first: the strand needs it to the end
  const Facts facts_;
  const std::function<void()> wake_;
  const Strand tasks_;

  mutable std::mutex mutex_;  // guards all below; never held while calling out
  State state_ = State::open;
  std::function<void()> on_gone_;
  std::string head_;       // ready for the wire: a whole response, or a stream's head
  std::string pending_;    // stream bytes, not yet framed
  std::string_view tail_;  // ready for the wire, after pending_
  std::size_t in_flight_bytes_ = 0;
  bool keep_alive_;
  bool woken_ = false;  // a wake is on its way; take() clears it
  bool too_slow_ = false;
  std::function<std::string()> make_keepalive_;
  std::chrono::seconds keepalive_interval_{0};  // <= 0: off
  TimePoint last_write_;
};

}  // namespace coppice::net
