// The scheduler: which request runs in which slot, what each engine step evaluates, who gets cells and who gives them
// up. A plain state machine without threads: engine_loop.h drives it for a server, tests and the simulator drive it
// directly.
//
// Owner: the engine loop. Threading: one thread. Sinks are called from within submit(), cancel(), step() and
// fail_all(). Invariants (check_invariants, beside those of Residency):
//   1. a slot is busy exactly while it runs a request; a request runs in at most one slot and has a lease on its
//   sequence
//   2. a running request's sequence holds a prefix of prompt + generated tokens
//   3. a request that waits for a prefix waits for one that runs, so that nobody waits in a circle
//   4. every request that submit() took ends with exactly one on_finished or on_failed
//   5. while background work is in its lane no request runs or waits
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
#include "sched/background_queue.h"
#include "sched/batch_plan.h"
#include "sched/cost_model.h"
#include "sched/inspector.h"
#include "sched/request.h"
#include "sched/residency.h"
#include "sched/session_keeper.h"
#include "sched/tiering.h"

namespace coppice::sched {

struct SchedulerOptions {
  std::int32_t n_slots = 4;
  float slot_prompt_similarity = 0.1F;
  TokenPos step_tokens_max =
      0;  // tokens that one step evaluates at most, decoding ones included; 0: the model's n_ubatch
  std::size_t queue_limit = 512;  // requests that may wait
  // Of requests that wait, the one with the fewest tokens to compute goes first, but none is overtaken more often. 0:
  // in order of arrival.
  std::int32_t overtake_limit = 64;
  std::size_t background_limit = 64;  // prompts that may wait to be prepared; one more, and the oldest is given up
  // What one step of background work may take, by what was measured: so long a request may have to wait for it.
  Duration background_step = std::chrono::milliseconds(50);
  // A request waits for another one's prefill if that saves at least so many tokens; below, waiting costs more than it
  // saves. The completions of one request (n > 1) wait for each other whatever it saves.
  TokenPos coalesce_tokens_min = 32;
  // Where the end of a sequence cannot be cut off (spec B21): a prompt's state is saved each so many tokens.
  TokenPos checkpoint_tokens = 4096;
  // A checkpoint costs its bytes, and often a step of its own: not for fewer tokens than these.
  TokenPos checkpoint_tokens_min = 64;
  // Idle sequences are left to host memory if they have so many cells of their own, and it pays (spec B19); see
  // scheduler_spill.cc.
  TokenPos spill_cells_min = 256;
  double spill_spread_min = 256;
  // A disk that has read nothing for so long hangs: who waits for it goes on with what there is.
  Duration disk_wait_max = std::chrono::seconds(10);
  SessionTable::Limits sessions;
  std::size_t pools_max = 64;
  std::shared_ptr<const kv::EvictionPolicy> eviction;  // null: the default one
  TierOptions tier;
};

class Scheduler final : public Inspector {
 public:
  // REQUIRES: options.n_slots <= runner.info().n_seqs. All references must outlive the scheduler.
  Scheduler(SchedulerOptions options, engine::Runner& runner, const engine::Tokenizer& tokenizer, const Clock& clock,
            obs::Metrics& metrics);
  ~Scheduler() override;

  // Whether the request could ever run: its slots exist, its prompt fits. Reads only what never changes: any thread.
  Result<void> check(const Request& request) const;

  // Takes the request. REQUIRES: check() passed.
  void submit(Request request);
  void cancel(RequestId id);
  void conclude(RequestId id);  // see Engine::conclude

  // Admits what can run and evaluates one batch. False when there was nothing to do: nothing is running or could start.
  bool step();

  // The part of a step that saves to the tiers, alone. Whether there was anything to save.
  bool save_some() { return tiering_.work(false); }

  // Called in the middle of a step when others may look: after requests were admitted, and before each on_finished,
  // when everything that the request changed is in place. Who hears of an end and then asks for the state finds the one
  // after it.
  void set_on_change(std::function<void()> hook) { on_change_ = std::move(hook); }

  // Ends every request with this error. `queued_only` leaves the running ones alone.
  void fail_all(const Error& error, bool queued_only);

  bool idle() const { return queue_.empty() && running() == 0 && background_.empty() && !tiering_.busy(); }
  // Nothing can be done before the disk has done something.
  bool waits_for_disk() const;
  void flush_tiers(std::function<void(tier::FlushResult)> done) override { tiering_.flush(std::move(done)); }
  tier::Stats tier_stats() const override { return tiering_.stats(); }
  std::size_t queued() const { return queue_.size(); }
  std::size_t running() const;  // the lane of background work included
  Snapshot snapshot() const;
  const Sequences& sequences() const { return residency_.sequences(); }
  const Residency& residency() const { return residency_; }
  // When something has to be done though no request comes: a pool or a pin expires, or the disk has had its time.
  std::optional<TimePoint> next_deadline() const;
  void check_invariants() const;  // asserts

  // Inspector
  Explanation explain(const Tokens& prompt, const Placement& placement) override;
  TreeNode tree(NamespaceId ns, std::int32_t depth_max, std::int32_t nodes_max) override;
  std::vector<SessionInfo> sessions(NamespaceId ns, std::size_t count_max) override;
  Result<SessionInfo> session(NamespaceId ns, const std::string& name) override;
  Result<TokenPos> forget_session(NamespaceId ns, const std::string& name) override;
  std::vector<RecentPrompt> recent_prompts(std::size_t count_max, TokenPos tokens_max) override;
  std::vector<PoolInfo> pools(NamespaceId ns) override;
  Result<PoolInfo> pool(NamespaceId ns, const std::string& name) override;
  Result<TokenPos> drop_pool(NamespaceId ns, const std::string& name) override;

 private:
  struct Slot {
    SlotId id;
    std::int64_t last_used = -1;  // order of release; -1: never (spec A3)
    std::unique_ptr<Active> active;
    SeqId seq() const { return active->lease.seq(); }  // REQUIRES: active
  };
  using Queue = std::deque<std::unique_ptr<Active>>;  // in order of arrival

  enum class Admission : std::uint8_t {
    admitted,
    wait_for_slot,
    wait_for_cells,
    wait_for_prefix,
    wait_for_blocks,
    impossible
  };

  // One request's prompt, compared with everything that is held.
  struct Lookup {
    const Tokens& prompt;
    const Placement& placement;
    std::optional<kv::SessionKey> session;
    std::vector<TokenPos> common;  // by SeqId, of the tokens that it holds or has promised
  };

  // scheduler_admit.cc
  void admit();
  Admission try_admit(std::unique_ptr<Active>& waiting);
  std::vector<Active*> admission_order(bool tried) const;
  TokenPos tokens_to_compute(const Active& a) const;
  void note_overtaken(RequestId by);
  bool has_passed(const PrefixWait& wait) const;
  void start(std::unique_ptr<Active> a, Slot& slot, const AdmissionFacts& facts);
  bool cells_suffice(TokenPos prompt_length, const kv::ReusePlan& plan) const;
  Result<void> check_pool(const Active& a, const kv::ReusePlan& plan) const;
  bool pool_in_the_making() const;
  Error too_long_beside_pools(TokenPos prompt_tokens, const kv::ReusePlan& plan) const;
  TokenPos reserved_cells() const;
  Residency::SeqSet wanted_sequences() const;
  bool evict_one(TokenPos cells);

  // scheduler_background.cc
  using Drop = obs::BackgroundDrop;
  void submit_background(std::unique_ptr<Active> a);
  void drop_background(std::unique_ptr<Active> a, Drop why);
  std::unique_ptr<Active> leave_lane();
  void preempt_background();
  void give_up_background(const kv::SessionKey& key, Drop why);
  void end_background(Drop why);
  bool cancel_background(RequestId id);
  void deliver_background(std::unique_ptr<Active> a);
  bool is_held(const Active& a, const Lookup& lookup) const;
  bool make_background_room(TokenPos cells, std::optional<SeqId> from);
  void begin_background();
  TokenPos background_step_tokens() const;
  void note_background(SeqId seq, TokenPos computed, Duration took);
  void take_over_prepared(SeqId from, TokenPos reused);
  TokenPos prepared_of(SeqId from, TokenPos reused) const;
  TokenPos use_prepared(SeqId from, TokenPos reused);

  // scheduler_restore.cc
  void find_in_tiers(Active& a, const std::vector<TokenPos>& common);
  bool may_look_at(Active& a);
  bool disk_is_late(Active& a);
  bool has_to_wait_for_disk(Active& a, const AdmissionFacts& facts);
  TokenPos cells_at_hand(const AdmissionFacts& facts, TokenPos until) const;
  kv::ReusePlan cells_plan(const AdmissionFacts& facts, TokenPos until) const;
  void add_tiers(AdmissionFacts& facts, TokenPos tokens) const;
  void restore_some();
  bool restore_block(Slot& slot);
  void end_restoring(Slot& slot);
  void restart_without_tiers(Slot& slot);
  static bool durable(const Active& a);
  void keep_filled(Active& a, SeqId seq);
  void keep_end(const Active& a, SeqId seq);

  // scheduler_spill.cc
  void note_step(Duration took);
  void spill_idle(TokenPos tokens);
  void start_rent(SeqId seq) { residency_.sequences().notes(seq).rent_from_s = costs_.rent_s(); }

  // scheduler_checkpoints.cc
  std::vector<TokenPos> checkpoints_of(const Active& a, TokenPos known) const;
  std::optional<TokenPos> checkpoint_stop(const Active& a) const;
  void save_checkpoints(Active& a);

  // scheduler_lookup.cc
  Lookup look_up(const Tokens& prompt, const Placement& placement) const;
  kv::SlotChoice place(const Lookup& lookup) const;
  kv::ReuseQuery reuse_query(const Lookup& lookup, SlotId own) const;
  std::optional<PrefixWait> who_computes_more(const Lookup& lookup, TokenPos reused) const;
  AdmissionFacts facts_of(const Lookup& lookup, const kv::SlotChoice& choice) const;

  // scheduler_report.cc
  void report_admission(Active& a, const AdmissionFacts& facts);
  std::string text_window(const Tokens& prompt, TokenPos at) const;

  // scheduler_step.cc
  bool build_batch();
  TokenPos count_decoding() const;
  void add_prefill();
  PrefillNeed prefill_need(const Slot& slot) const;
  void append_prefill(const Slot& slot, TokenPos count);
  bool make_room(TokenPos cells);
  void pause(Slot& slot);
  void note_evaluated();
  void pin_prefixes(Active& a);
  std::optional<TokenPos> next_pin(const Active& a) const;
  void sample_all();
  void finish_prefill(Slot& slot);
  void take_token(Slot& slot, engine::Sampled sampled);
  void end_with_failed_batch(engine::DecodeStatus status);
  bool free_something_for_retry();
  Slot& youngest();

  // scheduler_inspect.cc
  SessionInfo describe(const SessionTable::Session& session) const;
  PoolInfo describe(const Pool& pool) const;
  std::optional<Nearest> nearest(const Lookup& lookup) const;
  std::string text_of(const Tokens& tokens) const;

  void finish(Slot& slot, StopKind stop, TextDelta tail);
  void pin(const Active& a, SlotId slot);
  void deliver(std::unique_ptr<Active> a, StopKind stop, TextDelta tail);
  void end_early(std::unique_ptr<Active> a, const Error& error);
  std::unique_ptr<Active> release(Slot& slot);
  Duration save_at_once() const;
  void take_place_of(RequestId old, Active& a);
  void enqueue(std::unique_ptr<Active> a);
  void publish_gauges();
  void unpin_expired();
  TokenPos held(const Slot& s) const { return sequences().length(s.seq()); }
  Slot* slot_of(RequestId id);
  const Slot* slot_of(RequestId id) const;
  std::span<Slot> slots() { return std::span(slots_).first(static_cast<std::size_t>(options_.n_slots)); }
  std::span<const Slot> slots() const { return std::span(slots_).first(static_cast<std::size_t>(options_.n_slots)); }
  Slot& lane() { return slots_.back(); }
  const Slot& lane() const { return slots_.back(); }
  bool background_running() const { return !!lane().active; }
  Slot& slot(SlotId id) { return slots_[static_cast<std::size_t>(id.value)]; }
  const Slot& slot(SlotId id) const { return slots_[static_cast<std::size_t>(id.value)]; }

  SchedulerOptions options_;
  engine::Runner& runner_;
  const engine::Tokenizer& tokenizer_;
  const Clock& clock_;
  obs::Metrics& metrics_;
  Residency residency_;
  CostModel costs_;
  Tiering tiering_;
  SessionKeeper session_keeper_;
  kv::SlotMap slot_map_;
  std::vector<Slot> slots_;  // and, as the last one, the lane of background work; their leases end before residency_
  Queue queue_;
  BackgroundQueue background_;
  double background_token_s_ = 0;  // what a token of the lane's steps took lately; 0: unknown
  std::int64_t releases_ = 0;
  bool stalled_ = false;  // all that run wait for the disk to read their blocks
  bool retry_ = true;     // something has changed that a waiting request may have been waiting for
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
