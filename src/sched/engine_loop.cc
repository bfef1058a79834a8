#include "sched/engine_loop.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <utility>

namespace coppice::sched {
namespace {

Error shutting_down() { return {ErrorKind::unavailable, "the server is shutting down", {}}; }

}  // namespace

EngineLoop::EngineLoop(const SchedulerOptions& options, std::unique_ptr<engine::Runner> runner,
                       const engine::Tokenizer& tokenizer, const Clock& clock, obs::Metrics& metrics)
    : options_(options),
      runner_(std::move(runner)),
      metrics_(metrics),
      scheduler_(options, *runner_, tokenizer, clock, metrics),
      snapshot_(scheduler_.snapshot()) {
  scheduler_.set_on_change([this] { publish(); });
  metrics_.queue_limit.Set(static_cast<double>(options.queue_limit));
}

EngineLoop::~EngineLoop() { stop(Duration{0}); }

void EngineLoop::start() {
  thread_ = std::thread([this] { run(); });
}

void EngineLoop::stop(Duration grace) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) deadline_ = std::chrono::steady_clock::now() + grace;
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Result<void> EngineLoop::submit(Request request) {
  if (auto possible = scheduler_.check(request); !possible) return possible;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      metrics_.requests_refused.Increment();
      return std::unexpected(shutting_down());
    }
    if (waiting_ >= options_.queue_limit) {
      metrics_.requests_refused.Increment();
      return fail(ErrorKind::overloaded, fmt::format("{} requests are waiting already, try again later", waiting_));
    }
    ++waiting_;
    inbox_.emplace_back(std::move(request));
  }
  wake_.notify_one();
  return {};
}

void EngineLoop::cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.emplace_back(id);
  }
  wake_.notify_one();
}

RequestId EngineLoop::next_id() { return RequestId{next_id_.fetch_add(1)}; }

Snapshot EngineLoop::snapshot() const {
  const std::lock_guard lock(mutex_);
  Snapshot copy = snapshot_;
  copy.queued = waiting_;
  return copy;
}

void EngineLoop::run() {
  while (drain_inbox()) {
    scheduler_.step();
    publish();
  }
  // Cancels and submits that raced with the end: every request that was taken gets its one last event.
  scheduler_.fail_all(shutting_down(), false);
  publish();
}

// Hands the inbox to the scheduler, waiting for something to do. False when the loop is to end.
bool EngineLoop::drain_inbox() {
  std::vector<Command> commands;
  bool stopping = false;
  bool expired = false;
  {
    std::unique_lock lock(mutex_);
    if (scheduler_.idle()) wake_.wait(lock, [&] { return stopping_ || !inbox_.empty(); });
    commands = std::exchange(inbox_, {});
    stopping = stopping_;
    expired = stopping && std::chrono::steady_clock::now() >= deadline_;
  }
  for (Command& command : commands) {
    if (auto* request = std::get_if<Request>(&command)) {
      scheduler_.submit(std::move(*request));
    } else {
      scheduler_.cancel(std::get<RequestId>(command));
    }
  }
  if (stopping) scheduler_.fail_all(shutting_down(), true);
  if (stopping || !commands.empty()) publish();  // else run() has published this state after the last step
  return !expired && !(stopping && scheduler_.idle());
}

void EngineLoop::publish() {
  Snapshot fresh = scheduler_.snapshot();
  const std::lock_guard lock(mutex_);
  waiting_ = fresh.queued;
  for (const Command& command : inbox_) waiting_ += std::holds_alternative<Request>(command) ? 1 : 0;
  snapshot_ = std::move(fresh);
}

}  // namespace coppice::sched
