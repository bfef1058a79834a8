#include "sched/engine_loop.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <algorithm>
#include <utility>

#include "obs/log.h"

namespace coppice::sched {
namespace {

constexpr std::chrono::seconds kFlushMax{30};

Error shutting_down() { return {ErrorKind::unavailable, "the server is shutting down", {}}; }

}  // namespace

EngineLoop::EngineLoop(const SchedulerOptions& options, std::unique_ptr<engine::Runner> runner,
                       const engine::Tokenizer& tokenizer, const Clock& clock, obs::Metrics& metrics)
    : options_(options),
      runner_(std::move(runner)),
      clock_(clock),
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
    // Background work waits in no request's place, and is bounded by itself.
    if (!request.background && waiting_ >= options_.queue_limit) {
      metrics_.requests_refused.Increment();
      return fail(ErrorKind::overloaded, fmt::format("{} requests are waiting already, try again later", waiting_));
    }
    if (!request.background) ++waiting_;
    inbox_.emplace_back(std::move(request));
  }
  wake_.notify_one();
  return {};
}

void EngineLoop::cancel(RequestId id) { order(Cancel{id}); }

void EngineLoop::conclude(RequestId id) { order(Conclude{id}); }

void EngineLoop::order(Command command) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(command));
  }
  wake_.notify_one();
}

void EngineLoop::inspect(std::function<void(Inspector&)> task) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      inbox_.emplace_back(std::move(task));
      task = nullptr;
    }
  }
  // Once the engine thread has ended, its state belongs to whoever asks, one at a time.
  if (task) {
    const std::lock_guard lock(after_end_);
    return task(scheduler_);
  }
  wake_.notify_one();
}

void EngineLoop::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
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
  // Commands that raced with the end: every request that was taken gets its one last event, every inspection is made.
  std::vector<Command> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::exchange(inbox_, {});
    ended_ = true;
  }
  carry_out(std::move(last));
  scheduler_.fail_all(shutting_down(), false);
  flush_tiers();
  publish();
}

// What was computed is to be found again by the next start. A disk that hangs must not keep the process alive.
void EngineLoop::flush_tiers() {
  bool flushed = false;
  scheduler_.flush_tiers([&](tier::FlushResult result) {
    flushed = true;
    if (result.blocks + result.failed > 0) {
      obs::log_info("cache flushed", "blocks={} bytes={} failed={}", result.blocks, result.bytes, result.failed);
    }
  });
  const auto deadline = std::chrono::steady_clock::now() + kFlushMax;
  while (!flushed && std::chrono::steady_clock::now() < deadline) {
    if (scheduler_.save_some()) continue;
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::milliseconds(50), [&] { return std::exchange(woken_, false); });
  }
  if (!flushed) obs::log_warn("cache not flushed in time", "limit_s={}", kFlushMax.count());
}

// Hands the inbox to the scheduler, waiting for something to do. False when the loop is to end.
bool EngineLoop::drain_inbox() {
  std::vector<Command> commands;
  bool stopping = false;
  bool expired = false;
  {
    std::unique_lock lock(mutex_);
    if (scheduler_.idle() || scheduler_.waits_for_disk()) wait_for_work(lock);
    commands = std::exchange(inbox_, {});
    stopping = stopping_;
    expired = stopping && std::chrono::steady_clock::now() >= deadline_;
  }
  const bool changed = stopping || !commands.empty();  // else run() has published this state after the last step
  carry_out(std::move(commands));
  if (stopping) scheduler_.fail_all(shutting_down(), true);
  if (changed) publish();
  return !expired && !(stopping && scheduler_.idle());
}

void EngineLoop::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto there_is_work = [&] { return stopping_ || !inbox_.empty() || std::exchange(woken_, false); };
  if (const auto deadline = scheduler_.next_deadline()) {
    wake_.wait_for(lock, std::max(*deadline - clock_.now(), Duration{0}), there_is_work);
  } else {
    wake_.wait(lock, there_is_work);
  }
}

void EngineLoop::carry_out(std::vector<Command> commands) {
  for (Command& command : commands) {
    if (auto* request = std::get_if<Request>(&command)) {
      scheduler_.submit(std::move(*request));
    } else if (const auto* cancel = std::get_if<Cancel>(&command)) {
      scheduler_.cancel(cancel->id);
    } else if (const auto* conclude = std::get_if<Conclude>(&command)) {
      scheduler_.conclude(conclude->id);
    } else {
      std::get<Inspection>(command)(scheduler_);
    }
  }
}

void EngineLoop::publish() {
  Snapshot fresh = scheduler_.snapshot();
  const std::lock_guard lock(mutex_);
  waiting_ = fresh.queued;
  for (const Command& command : inbox_) {
    const auto* request = std::get_if<Request>(&command);
    if (request != nullptr && !request->background) ++waiting_;
  }
  snapshot_ = std::move(fresh);
}

}  // namespace coppice::sched
