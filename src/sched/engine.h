// What the layers above know of the scheduler. All methods are thread-safe and return at once.
#pragma once

#include <functional>

#include "base/error.h"
#include "sched/inspector.h"
#include "sched/request.h"

namespace coppice::sched {

class Engine {
 public:
  virtual ~Engine() = default;

  // Queues the request; events follow on its sink. Errors (the sink then gets nothing): overloaded, context_overflow,
  // invalid_request (unknown slot), unavailable (shutting down).
  virtual Result<void> submit(Request request) = 0;

  // The client went away. The request ends with on_failed(cancelled); its slot is free from the next step on.
  virtual void cancel(RequestId id) = 0;

  // The caller has what it wanted of the answer: the request ends at the next step with on_finished(StopKind::enough)
  // and keeps what was generated. Does nothing if it has generated nothing yet or has ended.
  virtual void conclude(RequestId id) = 0;

  // Runs `task` on the engine thread, between two steps, soon. It must not block or throw, and must not keep the
  // inspector. Always called exactly once, also when the engine is shutting down.
  virtual void inspect(std::function<void(Inspector&)> task) = 0;

  virtual RequestId next_id() = 0;
  virtual Snapshot snapshot() const = 0;
};

}  // namespace coppice::sched
