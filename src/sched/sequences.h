// What each sequence of the runner holds: its tokens, its namespace, and which cells it shares. The only place that
// changes the runner's memory, so that tokens, cells and the model's state cannot come apart.
//
// Life of a sequence:
//
//   free --acquire--> held --clear--> free
//                     grows by share() (empty to prefix), evaluated(); shrinks by cut(), trim()
//
// While its prompt is being computed a sequence is in the tree with all of it: what it holds is a beginning of what it
// has promised. Others see the promise and can wait for it instead of computing it too (spec B16). settle() takes back
// what was promised and not kept.
//
// Owner: the scheduler, on the engine thread.
// Invariants (check_invariants):
//   1. the first length(seq) tokens in the tree are those evaluated into the sequence's cells, position by position
//   2. cells().length(seq) == length(seq)
//   3. a sequence that is not in use holds nothing, is in no tree and has no lease
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/runner.h"
#include "kv/cell_map.h"
#include "kv/lease.h"
#include "kv/prefix_tree.h"
#include "kv/slot_map.h"

namespace coppice::sched {

// Told of what becomes of the sequences' tokens.
class SequenceObserver {
 public:
  virtual ~SequenceObserver() = default;
  virtual void grew(SeqId seq) = 0;                      // it holds more than before, or is in the tree now
  virtual void shared(SeqId from, SeqId to) = 0;         // all that `to` holds is a beginning of `from`
  virtual void shrinks(SeqId seq, TokenPos length) = 0;  // it is about to lose all but its first tokens
};

class Sequences {
 public:
  Sequences(engine::Runner& runner, const Clock& clock);

  void observe(SequenceObserver* observer) {
    observer_ = observer;
  }  // null: nobody. At most one, who outlives its watch

  // What people and policies want to know of a sequence; labels, no mechanism depends on them.
  struct Notes {
    std::optional<SlotId> slot;             // whose it is; none: parked or a pool
    std::optional<kv::SessionKey> session;  // whose request ran in it last
    std::int32_t uses = 0;                  // requests that went on from it or from what it grew out of
    std::uint64_t last_touch = 0;           // grows with every touch()
    TimePoint touched_at{};
    double rent_from_s = 0;  // CostModel::rent_s() when it became idle or was last shared from
    // Of its tokens, those that background work computed and nobody has used yet.
    TokenPos prepared_begin = 0, prepared_end = 0;
  };
  Notes& notes(SeqId seq) { return at(seq).notes; }
  const Notes& notes(SeqId seq) const { return at(seq).notes; }
  void touch(SeqId seq);

  std::int32_t count() const { return static_cast<std::int32_t>(sequences_.size()); }
  std::int32_t in_use() const { return in_use_; }
  bool in_use(SeqId seq) const { return at(seq).in_use; }
  TokenPos length(SeqId seq) const { return at(seq).length; }
  // What it holds, token by token. REQUIRES: it is in the tree, or empty.
  Tokens tokens(SeqId seq) const { return at(seq).length == 0 ? Tokens{} : tree_.tokens(seq, 0, at(seq).length); }
  NamespaceId namespace_of(SeqId seq) const { return at(seq).ns; }  // of what was promised
  TokenPos promised(SeqId seq) const { return tree_.length(seq); }  // held and to come; 0 for a hidden sequence
  const kv::PrefixTree& tree() const { return tree_; }
  // Of tree().common(), what each sequence holds and does not only promise.
  std::vector<TokenPos> held(std::vector<TokenPos> common) const;
  const kv::CellMap& cells() const { return cells_; }
  kv::LeaseBook& leases() { return leases_; }
  const kv::LeaseBook& leases() const { return leases_; }
  TokenPos free_cells() const { return runner_.info().n_cells - cells_.used(); }

  // A free sequence, empty; nothing if all are in use.
  std::optional<SeqId> acquire();

  // `to` begins with `from`'s first `length` tokens, in the same cells.
  // REQUIRES: `to` is empty; 0 < length <= length(from); the memory can resume there.
  void share(SeqId from, SeqId to, TokenPos length);

  // The same where the memory cannot resume there: a checkpoint has to be restored behind these cells (spec B21).
  void share_cells(SeqId from, SeqId to, TokenPos length);
  // Whether decoding can go on at its end. Not while it is being restored from a checkpoint.
  bool resumable(SeqId seq) const { return runner_.can_resume(seq, at(seq).length, at(seq).length); }

  // Only the first `length` tokens stay. REQUIRES: the memory can resume there, or length is 0.
  void cut(SeqId seq, TokenPos length);

  // Lets everyone see that the sequence will hold `tokens`. REQUIRES: they begin with what it holds.
  void promise(SeqId seq, NamespaceId ns, const Tokens& tokens);
  void settle(SeqId seq);

  // The runner evaluated this token at the end of the sequence.
  void evaluated(SeqId seq, Token token);

  // Saved cells at its end, up to position `end`, and the state there if it is a checkpoint's end. False if the runner
  // does not take them: nothing has changed then, or it is not resumable and of no use. REQUIRES: it has promised as
  // many.
  bool restore(SeqId seq, TokenPos end, const engine::Runner::Saved& saved);

  // Where other sequences hold the same tokens in other cells, all of them now share one copy (spec A8, B15). Returns
  // the cells that became free; 0 where the memory cannot do it.
  TokenPos fold(SeqId seq);

  // Whether some other sequence holds everything that this one does, so that losing it loses nothing. Never where the
  // memory cannot go back to any point.
  bool covered(SeqId seq) const;
  // The sequences that `seq` covers.
  std::vector<SeqId> covered_by(SeqId seq) const;

  // Frees at least `cells` cells at the sequence's end; a few more, so that the next need does not come at once. Only
  // the end is of no use to those who share the beginning. REQUIRES: can_trim().
  void trim(SeqId seq, TokenPos cells);
  bool can_trim(SeqId seq, TokenPos cells) const;
  TokenPos length_after_trim(SeqId seq, TokenPos cells) const;

  // Ends the sequence: it is free again. REQUIRES: no lease on it.
  void clear(SeqId seq);

  void check_invariants() const;  // asserts

 private:
  struct Sequence {
    bool in_use = false;
    TokenPos length = 0;
    NamespaceId ns;
    Notes notes;
  };
  Sequence& at(SeqId seq) { return sequences_[static_cast<std::size_t>(seq.value)]; }
  const Sequence& at(SeqId seq) const { return sequences_[static_cast<std::size_t>(seq.value)]; }
  bool rewinds_anywhere() const { return runner_.info().rewind == engine::Rewind::anywhere; }
  // How many tokens each sequence and this one both hold as their beginning, by SeqId; 0 for itself. REQUIRES: it is in
  // the tree.
  std::vector<TokenPos> held_in_common(SeqId seq) const;
  void shrinks(SeqId seq, TokenPos length) {
    if (observer_ != nullptr) observer_->shrinks(seq, length);
  }
  void grew(SeqId seq) {
    if (observer_ != nullptr) observer_->grew(seq);
  }
  void shared(SeqId from, SeqId to, TokenPos length);
  void take_cells_of(SeqId from, SeqId to, kv::CellMap::Range range);

  engine::Runner& runner_;
  const Clock& clock_;
  kv::CellMap cells_;
  kv::PrefixTree tree_;
  kv::LeaseBook leases_;
  std::vector<Sequence> sequences_;
  std::int32_t in_use_ = 0;
  std::uint64_t touches_ = 0;
  SequenceObserver* observer_ = nullptr;
};

}  // namespace coppice::sched
