// The scheduler: which request runs in which slot, what each engine step evaluates, who gets cells and who gives them
// up. A plain state machine without threads: engine_loop.h drives it for a server, tests and the simulator drive it
// directly.
//
// Owner: the engine loop. Threading: one thread. Sinks are called from within submit(), cancel(), step() and stop().
// Invariants (check_invariants, beside those of Sequences):
//   1. a slot is busy exactly while it runs a request; a request runs in at most one slot
//   2. a running request's sequence holds a prefix of prompt + generated tokens
//   3. every request that submit() took ends with exactly one on_finished or on_failed
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/runner.h"
#include "engine/tokenizer.h"
#include "kv/slot_choice.h"
#include "kv/slot_map.h"
#include "obs/metrics.h"
#include "sched/active.h"
#include "sched/admission.h"
#include "sched/request.h"
#include "sched/sequences.h"
#include "sched/session_history.h"

namespace coppice::sched {

struct SchedulerOptions {
  std::int32_t n_slots = 4;
  float slot_prompt_similarity = 0.1F;
  TokenPos step_tokens_max =
      0;  // tokens that one step evaluates at most, decoding ones included; 0: the model's n_ubatch
  std::size_t queue_limit = 512;  // requests that may wait
  SessionHistory::Limits history;
};

class Scheduler {
 public:
  // REQUIRES: options.n_slots <= runner.info().n_seqs. All references must outlive the scheduler.
  Scheduler(SchedulerOptions options, engine::Runner& runner, const engine::Tokenizer& tokenizer, const Clock& clock,
            obs::Metrics& metrics);
  ~Scheduler();

  // Whether the request could ever run: its slots exist, its prompt fits. Reads only what never changes: any thread.
  Result<void> check(const Request& request) const;

  // Takes the request. REQUIRES: check() passed.
  void submit(Request request);
  void cancel(RequestId id);

  // Admits what can run and evaluates one batch. False when there was nothing to do: nothing is running or could start.
  bool step();

  // Called in the middle of a step when others may look: after requests were admitted, and before each on_finished,
  // when everything that the request changed is in place. Who hears of an end and then asks for the state finds the one
  // after it.
  void set_on_change(std::function<void()> hook) { on_change_ = std::move(hook); }

  // Ends every request with this error. `queued_only` leaves the running ones alone.
  void fail_all(const Error& error, bool queued_only);

  bool idle() const { return queue_.empty() && running() == 0; }
  std::size_t queued() const { return queue_.size(); }
  std::size_t running() const;
  Snapshot snapshot() const;
  const Sequences& sequences() const { return sequences_; }
  void check_invariants() const;  // asserts

 private:
  struct Slot {
    SlotId id;
    SeqId seq;
    std::int64_t last_used = -1;  // order of release; -1: never (spec A3)
    std::unique_ptr<Active> active;
  };
  using Queue = std::deque<std::unique_ptr<Active>>;  // in order of arrival

  enum class Admission : std::uint8_t { admitted, wait_for_slot, wait_for_cells };

  // scheduler_admit.cc
  void admit();
  Admission try_admit(std::unique_ptr<Active>& waiting);
  kv::SlotChoice place(const Active& a) const;
  kv::ReuseQuery reuse_query(const Active& a, const Slot& slot) const;
  bool cells_suffice(const Active& a, const Slot& slot, const kv::ReusePlan& plan) const;
  void start(std::unique_ptr<Active> a, Slot& slot, const AdmissionFacts& facts);
  bool waits_for_fork(const Active& a) const;
  TokenPos reserved_cells() const;
  bool evict_one(const Slot* except);

  // scheduler_report.cc
  void explain(Active& a, const AdmissionFacts& facts);
  std::string text_window(const Tokens& prompt, TokenPos at) const;

  // scheduler_step.cc
  bool build_batch();
  void add_prefill();
  void append_prefill(const Slot& slot, TokenPos count);
  bool make_room(TokenPos cells);
  void pause(Slot& slot);
  void note_evaluated();
  void sample_all();
  void finish_prefill(Slot& slot);
  void take_token(Slot& slot, engine::Sampled sampled);
  void end_with_failed_batch(engine::DecodeStatus status);

  void finish(Slot& slot, StopKind stop, TextDelta tail);
  void end_early(std::unique_ptr<Active> a, const Error& error);
  std::unique_ptr<Active> release(Slot& slot);
  void enqueue(std::unique_ptr<Active> a);
  void publish_gauges();
  Slot* slot_of(RequestId id);
  const Slot* slot_of(RequestId id) const;
  Slot& slot(SlotId id) { return slots_[static_cast<std::size_t>(id.value)]; }
  const Slot& slot(SlotId id) const { return slots_[static_cast<std::size_t>(id.value)]; }

  SchedulerOptions options_;
  engine::Runner& runner_;
  const engine::Tokenizer& tokenizer_;
  const Clock& clock_;
  obs::Metrics& metrics_;
  Sequences sequences_;
  kv::SlotMap slot_map_;
  SessionHistory history_;
  std::vector<Slot> slots_;
  Queue queue_;
  std::int64_t releases_ = 0;
  std::function<void()> on_change_;

  // Of the step in progress.
  std::vector<engine::BatchItem> batch_;
  struct Pick {
    std::int32_t index = 0;  // of the batch item whose logits to sample
    SlotId slot;
  };
  std::vector<Pick> picks_;
};

}  // namespace coppice::sched
