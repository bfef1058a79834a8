#include "net/exchange.h"

#include <exception>
#include <utility>

#include "net/http_text.h"
#include "obs/log.h"

namespace coppice::net {

Exchange::Exchange(std::shared_ptr<Context> context, Facts facts, std::function<void()> wake)
    : context_(std::move(context)),
      facts_(std::move(facts)),
      wake_(std::move(wake)),
      tasks_(context_->io.get_executor()),
      keep_alive_(facts_.keep_alive) {}

std::shared_ptr<api::Responder> Exchange::responder() {
  return {this, [self = shared_from_this()](api::Responder*) { self->give_up(); }};
}

Exchange::State Exchange::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

bool Exchange::too_slow() const {
  std::lock_guard lock(mutex_);
  return too_slow_;
}

Exchange::Output Exchange::take() {
  std::lock_guard lock(mutex_);
  woken_ = false;
  Output output{std::move(head_), state_ == State::ended, !keep_alive_};
  head_.clear();
  in_flight_bytes_ = pending_.size();
  if (!pending_.empty()) {
    if (chunked()) {
      append_chunk(output.bytes, pending_);
    } else {
      output.bytes += pending_;
    }
    pending_.clear();
  }
  output.bytes += std::exchange(tail_, {});
  return output;
}

void Exchange::send(api::HttpResponse response) {
  std::function<void()> unused;  // destroyed after the lock is released: it may own anything
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::open) return;
    state_ = State::ended;
    unused.swap(on_gone_);
    keep_alive_ = keep_alive_ && !context_->connections.stopping();
    head_ = encode_response(response, keep_alive_, facts_.head_only);
  }
  context_->count_response(response.status);
  wake_();
}

void Exchange::start_stream(std::string content_type) {
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::open) return;
    state_ = State::streaming;
    keep_alive_ = keep_alive_ && !facts_.http_1_0 && !context_->connections.stopping();
    head_ = encode_stream_head(content_type, !facts_.http_1_0, keep_alive_);
    woken_ = true;
  }
  context_->count_response(200);
  wake_();
}

bool Exchange::write(std::string bytes) {
  bool fits = false;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::streaming) return false;
    if (facts_.head_only || bytes.empty()) return true;
    const std::size_t piled_up = pending_.size() + in_flight_bytes_;
    // One write alone is never the client's fault, however long it is.
    fits = piled_up == 0 || piled_up + bytes.size() <= context_->options.stream_buffer_bytes_max;
    if (fits) {
      pending_ += bytes;
      last_write_ = std::chrono::steady_clock::now();
      if (std::exchange(woken_, true)) return true;
    }
  }
  if (!fits) client_too_slow();
  wake_();
  return fits;
}

void Exchange::finish() {
  std::function<void()> unused;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::streaming) return;
    state_ = State::ended;
    unused.swap(on_gone_);
    if (chunked()) tail_ = kLastChunk;
  }
  wake_();
}

void Exchange::set_keepalive(std::function<std::string()> make, std::chrono::seconds interval) {
  {
    std::lock_guard lock(mutex_);
    make_keepalive_.swap(make);
    keepalive_interval_ = interval;
    last_write_ = std::chrono::steady_clock::now();
  }
  wake_();
}

std::optional<Exchange::TimePoint> Exchange::keepalive_due() const {
  std::lock_guard lock(mutex_);
  if (state_ != State::streaming || keepalive_interval_.count() <= 0) return std::nullopt;
  return last_write_ + keepalive_interval_;
}

void Exchange::keep_alive_if_silent() {
  const auto due = keepalive_due();
  if (!due || std::chrono::steady_clock::now() < *due) return;
  std::function<std::string()> make;
  {
    std::lock_guard lock(mutex_);
    make = make_keepalive_;
    last_write_ = std::chrono::steady_clock::now();  // the task may have to wait; it must not be posted again meanwhile
  }
  post([self = shared_from_this(), make = std::move(make)] { self->write(make()); });
}

void Exchange::client_gone() {
  std::function<void()> callback;
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::ended || state_ == State::gone) return;
    state_ = State::gone;
    callback.swap(on_gone_);
    head_.clear();
    pending_.clear();
  }
  if (callback) post(std::move(callback));
}

void Exchange::client_too_slow() {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::gone || std::exchange(too_slow_, true)) return;
  }
  context_->count_dropped_stream();
  obs::log_warn("client dropped", "reason=reads_too_slowly");
  client_gone();
}

void Exchange::on_gone(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::ended) return;
    if (state_ != State::gone) {
      on_gone_.swap(callback);
      return;
    }
  }
  if (callback) post(std::move(callback));
}

void Exchange::post(std::function<void()> task) {
  context_->post(tasks_, [self = shared_from_this(), task = std::move(task)] { self->run(task); });
}

void Exchange::run(const std::function<void()>& task) {
  try {
    task();
    return;
  } catch (const std::exception& error) {
    obs::log_error("handler failed", "error={}", error.what());
  } catch (...) {
    obs::log_error("handler failed", "error=unknown");
  }
  give_up();
}

void Exchange::give_up() {
  switch (state()) {
    case State::open: send(context_->refusal(500, "The server failed to answer this request.", facts_.path)); return;
    case State::streaming:
      client_gone();
      wake_();
      return;
    case State::ended:
    case State::gone: return;
  }
}

}  // namespace coppice::net
