// The engine thread: owns the runner and the scheduler, and is the only thread that touches them. Other threads talk to
// it through a bounded inbox.
//
// Threading: the Engine methods, start() and stop() are thread-safe. mutex_ guards what the comment at each member
// says.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "sched/engine.h"
#include "sched/scheduler.h"

namespace coppice::sched {

class EngineLoop final : public Engine {
 public:
  // `tokenizer`, `clock` and `metrics` must outlive the loop. REQUIRES: options.n_slots <= runner->info().n_seqs.
  EngineLoop(const SchedulerOptions& options, std::unique_ptr<engine::Runner> runner,
             const engine::Tokenizer& tokenizer, const Clock& clock, obs::Metrics& metrics);
  ~EngineLoop() override;  // stops at once

  void start();

  // Refuses new requests and fails the queued ones from now on; lets the running ones finish for `grace`, then fails
  // them with ErrorKind::unavailable. Returns when the engine thread has ended. Calling it again does nothing.
  void stop(Duration grace);

  void wake();  // the disk has done something; any thread

  Result<void> submit(Request request) override;
  void cancel(RequestId id) override;
  void conclude(RequestId id) override;
  void inspect(std::function<void(Inspector&)> task) override;
  RequestId next_id() override;
  Snapshot snapshot() const override;

 private:
  using Inspection = std::function<void(Inspector&)>;
  struct Cancel {
    RequestId id;
  };
  struct Conclude {
    RequestId id;
  };
  using Command = std::variant<Request, Cancel, Conclude, Inspection>;

  void run();
  void flush_tiers();
  void order(Command command);
  bool drain_inbox();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void carry_out(std::vector<Command> commands);
  void publish();

  SchedulerOptions options_;
  std::unique_ptr<engine::Runner> runner_;
  const Clock& clock_;
  obs::Metrics& metrics_;
  Scheduler scheduler_;  // engine thread only, but for check()
  std::atomic<std::uint64_t> next_id_{1};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Command> inbox_;                        // guarded by mutex_
  std::size_t waiting_ = 0;                           // guarded: requests in the inbox or the scheduler's queue
  Snapshot snapshot_;                                 // guarded
  bool woken_ = false;                                // guarded
  bool stopping_ = false;                             // guarded: no more requests
  std::chrono::steady_clock::time_point deadline_{};  // guarded, once stopping_
  std::mutex after_end_;                              // guards scheduler_ once the engine thread has ended
  bool ended_ = false;                                // guarded: the engine thread takes no more commands
  std::thread thread_;
};

}  // namespace coppice::sched
