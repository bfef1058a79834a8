// What stays in the cells: which sequence belongs to which slot, what is parked, what is pinned as a pool, and what is
// given up when cells or sequences run out. Reuse never destroys: a slot that goes on with another prompt leaves its
// sequence parked, where anyone can still start from it (spec B15).
//
//   a sequence is     until
//   a slot's          the slot goes on elsewhere: leave()          -> parked, or ended if another holds all of it
//                     no longer needed there: evict_one(), drop()  -> ended
//   parked            a request goes on exactly where it ends      -> that request's slot's
//                     another sequence holds all of it: retire()   -> ended
//                     evict_one(), drop()                          -> ended
//   a pool            unpin()                                      -> parked, or ended if another holds all of it
//   a pin             unpin_prefix(), give_up_a_pin()              -> parked, or ended if another holds all of it
//
// Owner: the scheduler, on the engine thread.
// Invariants (check_invariants, beside those of Sequences):
//   1. every sequence in use is exactly one of: one slot's, one pool's, one pin's, parked
//   2. a pool's or pin's sequence is leased; a parked one is not
//   3. pools, pins and slots together are no more than there are sequences
#pragma once

#include <bitset>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/runner.h"
#include "kv/eviction.h"
#include "kv/reuse_plan.h"
#include "obs/metrics.h"
#include "sched/inspector.h"
#include "sched/pool_table.h"
#include "sched/prefix_pins.h"
#include "sched/sequences.h"
#include "sched/session_table.h"

namespace coppice::sched {

class Residency {
 public:
  struct Options {
    std::int32_t n_slots = 4;
    SessionTable::Limits sessions;
    std::size_t pools_max = 64;                               // at most; and never so many that a slot has no sequence
    std::shared_ptr<const kv::EvictionPolicy> eviction;       // null: RecomputeCostPolicy
    std::function<void(const kv::SessionKey&)> on_forgotten;  // a session; may be empty
    // Before a sequence is given up, all but its first tokens; may be empty.
    std::function<void(SeqId, TokenPos)> on_loss;
  };
  // There is a slot more than `n_slots`, for background work: it takes no sequence that is not free.
  // REQUIRES: options.n_slots <= runner.info().n_seqs.
  Residency(const Options& options, engine::Runner& runner, const Clock& clock, obs::Metrics& metrics);

  Sequences& sequences() { return sequences_; }
  const Sequences& sequences() const { return sequences_; }
  SessionTable& sessions() { return sessions_; }
  const SessionTable& sessions() const { return sessions_; }
  PoolTable& pools() { return pools_; }
  const PoolTable& pools() const { return pools_; }
  const PrefixPins& pins() const { return pins_; }

  std::optional<SeqId> of(SlotId slot) const { return slots_[static_cast<std::size_t>(slot.value)]; }
  // Tokens that the slot's sequence holds; 0 if it has none.
  TokenPos held(SlotId slot) const;
  bool is_parked(SeqId seq) const;
  std::int32_t n_parked() const;
  SequencePlace place(SeqId seq) const;

  // Gives the slot a sequence that holds exactly the plan's tokens: its own or a parked one where that ends just there,
  // else a new one that shares them. What the slot had before is left, as leave() says. Where no sequence is free and
  // none can be given up, the plan's own is cut. REQUIRES: the plan was made from the present state; the slot's
  // sequence has no lease; a plan of cells only needs can_share_cells().
  SeqId begin(SlotId slot, const kv::ReusePlan& plan);

  // Whether there is a sequence to share its cells into: a free one, or another one that can be given up.
  bool can_share_cells(SeqId from) const;

  // The slot lets go of its sequence.
  void leave(SlotId slot);

  // The request in it has ended: takes back what was promised, folds duplicates, and ends what it covers. REQUIRES: no
  // lease on it but a pool's.
  void retire(SeqId seq);

  // Folds and counts it.
  void fold(SeqId seq);

  // Ends the sequence, whatever it is. REQUIRES: no lease on it.
  void drop(SeqId seq);

  // A label for people and for eviction: whose request runs in it.
  void set_session(SeqId seq, const std::optional<kv::SessionKey>& session);

  using SeqSet = std::bitset<kv::PrefixTree::kSeqsMax>;

  // Gives up the sequence worth least, of those without a lease: for cells, as much of it as frees `cells`, at least
  // one. `wanted`: those that waiting requests are interested in; they go last. False if there is none.
  bool evict_one(kv::Shortage shortage, TokenPos cells, const SeqSet& wanted);

  // Cells that pools and pins hold, those shared by several counted once. Requests have to run beside them.
  TokenPos pinned_cells_max() const { return runner_.info().n_cells / 4 * 3; }
  TokenPos pinned_cells() const;
  std::vector<kv::CellMap::Keep> pinned() const;

  // Turns the slot's sequence into a pool; a pool of the same name is unpinned first, and pins give way. REQUIRES: no
  // lease on the sequence; the name is known or the table is not full.
  void pin(SlotId slot, NamespaceId ns, const PoolSpec& spec);
  void unpin(NamespaceId ns, const std::string& name);

  // Keeps `prefix`, with which `from` begins, for `ttl`, in a sequence of its own; where it is kept already, longer.
  // False if it cannot be: there is no place or there are no cells for one more, or the memory cannot go back there.
  // REQUIRES: prefix is not empty and `from` holds it.
  bool pin_prefix(SeqId from, NamespaceId ns, std::span<const Token> prefix, Duration ttl);

  // Lets go of the pin that ends first. False if there is none.
  bool give_up_a_pin();

  bool unpin_expired();  // pools and pins; whether there was one
  std::optional<TimePoint> next_expiry() const;

  void check_invariants() const;  // asserts

 private:
  std::optional<SeqId>& slot_ref(SlotId slot) { return slots_[static_cast<std::size_t>(slot.value)]; }
  void settle_unowned(SeqId seq);
  std::optional<SeqId> acquire();
  bool extend_pin(const std::vector<TokenPos>& common, TokenPos length, TimePoint expires);
  std::vector<SeqId> superseded_by(const std::vector<TokenPos>& common, TokenPos length, TimePoint expires) const;
  void unpin_prefix(SeqId seq);

  engine::Runner& runner_;
  const Clock& clock_;
  obs::Metrics& metrics_;
  std::shared_ptr<const kv::EvictionPolicy> policy_;
  std::function<void(SeqId, TokenPos)> on_loss_;
  Sequences sequences_;
  SessionTable sessions_;
  std::size_t pinned_max_;                   // pools and pins together
  PoolTable pools_;                          // its leases end before sequences_
  PrefixPins pins_;                          // likewise
  std::vector<std::optional<SeqId>> slots_;  // by SlotId; the last one is the lane of background work
};

}  // namespace coppice::sched
