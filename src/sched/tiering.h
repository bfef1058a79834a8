// Carries KV between the cells and the tiers: finds what a prompt has there, puts it back into a sequence, and saves
// what was computed, block by block, so that no step of the engine takes long.
//
//   submit    find()      leases the chain of blocks that the prompt begins with, and has the disk's part read, as far
//                         as there is room in host memory
//   admission usable()    how much of it can be had
//   steps     prepare()   whether the next block is there; blocks that are in the cells make room for the next ones
//             restore()   one block after the other into the request's sequence
//   on a way  checkpoint()  where cells are not enough to go on from: the state at a position, now or never
//   as it fills and at its ends   keep()   blocks that are not saved yet are, a few per step, while there is room;
//   while
//                         requests run, in a small part of the time
//   eviction  keep_now()  what was not saved yet, before it is lost
//
// Full blocks that stand in cells are known to the tiers by name (cell_blocks.h). Host memory that is full leaves them
// out: they are saved when the cells lose them. What is to survive a restart passes through host memory in any case.
//
// Owner: the scheduler. Threading: the engine thread. Everything does nothing when there are no tiers, or when the
// model's memory cannot save ranges.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "engine/runner.h"
#include "obs/metrics.h"
#include "sched/cell_blocks.h"
#include "sched/cost_model.h"
#include "sched/pool_record.h"
#include "sched/sequences.h"
#include "tier/tiers.h"

namespace coppice::sched {

struct TierOptions {
  tier::Tiers* tiers = nullptr;  // must outlive the scheduler; null: none
  std::string fingerprint;       // of everything that KV depends on besides tokens and namespace
};

// What the blocks of this namespace's conversations go on from.
tier::BlockId root_of(const std::string& fingerprint, NamespaceId ns);

// What the tiers had of a prompt when it arrived, held for it.
struct TierHold {
  tier::Lease lease;
  TokenPos tokens = 0;             // of the prompt, all of it together
  TokenPos tokens_in_host = 0;     // of those, without reading from the disk
  TokenPos in_cells = 0;           // the first ones, which sequences were seen to hold: they need not be read
  std::uint64_t blocks_saved = 0;  // Tiering::blocks_saved() then: more may be had now if it has grown
};

// The pools of before that belong to this model. REQUIRES: no scheduler uses the tiers yet.
std::vector<PoolRecord> pool_records(const TierOptions& options);

class Tiering {
 public:
  Tiering(TierOptions options, Sequences& sequences, engine::Runner& runner, CostModel& costs, const Clock& clock,
          obs::Metrics& metrics);

  bool on() const { return tiers_ != nullptr; }

  // Whether cells alone are not enough to go on from: chains end in checkpoints (spec B21).
  bool has_checkpoints() const { return on() && last_ == tier::BlockKind::checkpoint; }

  // Of the prompt's first tokens.size() - 1; the last one is always evaluated. What the first `in_cells` tokens need is
  // not read from the disk.
  TierHold find(NamespaceId ns, const Tokens& prompt, TokenPos in_cells);
  TokenPos known(NamespaceId ns, const Tokens& prompt, TokenPos* in_host) const;  // the same, without holding it
  std::uint64_t blocks_saved() const { return blocks_saved_; }
  void prefetch(TierHold& hold, TokenPos in_cells);  // again, as cells may have gone meanwhile
  bool waits_for_disk(const TierHold& hold) const;
  void leave_out_the_disk(TierHold& hold) const;  // what has not been read by now is not counted on
  // Tokens of the prompt that a sequence with its first `in_cells` cells can be brought to.
  TokenPos usable(const TierHold& hold) const;

  TokenPos block_tokens() const { return block_tokens_; }  // 0 while off

  // Tokens of the blocks that have to be restored to come from `begin` to `end`: each comes as a whole.
  TokenPos block_span(TokenPos begin, TokenPos end) const {
    return begin >= end
               ? 0
               : (end + block_tokens_ - 1) / block_tokens_ * block_tokens_ - begin / block_tokens_ * block_tokens_;
  }

  // Whether all that the sequence holds can be brought back from host memory.
  bool holds(SeqId seq) const;

  // Whether the block behind the sequence's tokens can be restored. What the sequence has already is let go, and the
  // reads go on.
  enum class Next : std::uint8_t {
    ready,
    reading,
    no_room,  // other requests' blocks take all host memory; when they are restored it has some again
    gone,     // no more is to be had
  };
  Next prepare(SeqId seq, TierHold& hold, TokenPos until);

  // Cells that have to be free for restore(): a block comes as a whole, though maybe only a part of it is kept; where
  // only the state is missing, none.
  TokenPos cells_needed(SeqId seq, const TierHold& hold, TokenPos until) const;

  // Puts the next block into the sequence, which holds a beginning of the prompt; at most up to `until`. The tokens
  // that it gained, none if only a state was missing; nothing if no more can be had. REQUIRES: the sequence has
  // promised `until` tokens; cells_needed() are free.
  std::optional<TokenPos> restore(SeqId seq, const TierHold& hold, TokenPos until);

  // Saves the sequence's first `length` tokens behind, from whichever sequence holds them then. `tokens` begin with
  // them. `durable`: so that they survive a restart. `whole`: the last block too, though it is not full.
  void keep(SeqId seq, std::shared_ptr<const Tokens> tokens, TokenPos length, bool durable, bool whole);
  // Before the sequence loses all but its first `length` tokens: what is not saved of the rest, at once, for so long at
  // most, but a few blocks in any case.
  void keep_now(SeqId seq, TokenPos length, Duration limit);
  // Has all of the sequence in host memory, if there is room for what is missing; whether it is there now.
  bool bring_to_host(SeqId seq, Duration limit);
  // Saves the state behind the sequence's first `at` tokens at once: later it is not there any more. The cells before
  // it follow behind. REQUIRES: has_checkpoints(); the sequence is in the tree and can be resumed there.
  void checkpoint(SeqId seq, TokenPos at, bool durable);

  // Pools without an end are made again by the next start of the server; see pool_records().
  void record_pool(NamespaceId ns, const std::string& name, Tokens tokens);
  void forget_pool(NamespaceId ns, const std::string& name);

  // One piece of what is to be saved. Whether there was any that could be done now: while requests run, `busy`, saving
  // takes a small part of the time only.
  bool work(bool busy);
  bool has_work() const { return on() && !jobs_.empty(); }
  bool busy() const { return on() && (!jobs_.empty() || !flushes_.empty()); }

  tier::Stats stats() const;
  void check_invariants() const {  // asserts
    if (cell_blocks_) cell_blocks_->check_invariants();
  }

  // Calls `done` once everything that was computed until now is on disk or has failed; at once without tiers.
  void flush(std::function<void(tier::FlushResult)> done);

 private:
  struct Job {
    NamespaceId ns;
    std::shared_ptr<const Tokens> tokens;
    TokenPos length = 0;  // of the tokens, what is to be saved
    bool durable = false, whole = false;
    tier::Tiers::Room room{};  // for what need not be durable
    tier::BlockId parent{};    // of the block that begins at `next`
    TokenPos next = 0;
    std::span<const Token> all() const { return std::span(*tokens).first(static_cast<std::size_t>(length)); }
    bool goes_on(const Job& longer) const;
  };
  struct Flush {
    std::uint64_t jobs_before = 0;        // jobs that have to be done first, by number
    std::optional<std::uint64_t> ticket;  // none: not begun
    std::function<void(tier::FlushResult)> done;
  };
  enum class Saved : std::uint8_t { known, saved, left, failed };  // left: in cells, where there is no room for it

  const tier::BlockId& root(NamespaceId ns) const;
  tier::Found look_up(NamespaceId ns, const Tokens& prompt) const;
  std::size_t first_needed(const TierHold& hold) const;
  std::optional<std::size_t> next_block(const TierHold& hold, SeqId seq, TokenPos until) const;
  Job job_of(SeqId seq, std::shared_ptr<const Tokens> tokens, TokenPos begin, TokenPos length) const;
  Job job_at_once(SeqId seq, TokenPos begin, TokenPos length) const;
  bool advance(Job& job);
  bool run(Job& job, Duration limit);
  Saved save_block(const Job& job, TokenPos end, const tier::BlockId& id);
  std::optional<SeqId> holder(NamespaceId ns, const Tokens& tokens, TokenPos end, tier::BlockKind kind) const;
  void check_flushes();

  tier::Tiers* tiers_;  // null: off
  const std::string fingerprint_;
  Sequences& sequences_;
  engine::Runner& runner_;
  CostModel& costs_;
  const Clock& clock_;
  obs::Metrics& metrics_;
  TokenPos block_tokens_ = 0;
  tier::BlockKind last_;                                            // of the block that ends a chain
  std::optional<CellBlocks> cell_blocks_;                           // while on
  mutable std::unordered_map<std::uint64_t, tier::BlockId> roots_;  // by namespace
  std::deque<Job> jobs_;
  TimePoint unsaved_since_{};  // while requests run: nothing was saved since then, or nobody ran
  tier::Stalls stalls_;
  std::uint64_t blocks_saved_ = 0;
  std::uint64_t jobs_begun_ = 0, jobs_ended_ = 0;
  std::vector<Flush> flushes_;
};

}  // namespace coppice::sched
