// What each sequence of the runner holds: its tokens, its namespace, and which cells it shares. The only place that
// changes the runner's memory, so that tokens, cells and the model's state cannot come apart.
//
// Owner: the scheduler, on the engine thread.
// Invariants (check_invariants):
//   1. tokens(seq) is what was evaluated into the sequence's cells, position by position
//   2. cells().length(seq) == tokens(seq).size()
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "engine/runner.h"
#include "kv/cell_map.h"
#include "kv/reuse_plan.h"

namespace coppice::sched {

class Sequences {
 public:
  explicit Sequences(engine::Runner& runner);

  const Tokens& tokens(SeqId seq) const { return at(seq).tokens; }
  NamespaceId ns(SeqId seq) const { return at(seq).ns; }
  TokenPos length(SeqId seq) const { return static_cast<TokenPos>(tokens(seq).size()); }
  const kv::CellMap& cells() const { return cells_; }
  TokenPos free_cells() const { return runner_.info().n_cells - cells_.used(); }

  // Grows with every touch(); the sequence with the least is the first to be evicted.
  std::uint64_t last_touch(SeqId seq) const { return at(seq).last_touch; }
  void touch(SeqId seq) { at(seq).last_touch = ++touches_; }

  // How much of `prompt` the sequence begins with; 0 in another namespace (spec B24).
  kv::Holder holder(SeqId seq, const Tokens& prompt, NamespaceId ns) const;

  // Makes the sequence hold exactly the prompt's first plan.reused() tokens, as planned. Returns the cells that a fold
  // freed. REQUIRES: the plan was made from the present state.
  TokenPos apply(SeqId seq, const kv::ReusePlan& plan, NamespaceId ns);

  // The runner evaluated these tokens at the end of the sequence.
  void evaluated(SeqId seq, Token token);

  void clear(SeqId seq);

  void check_invariants() const;  // asserts

 private:
  struct Sequence {
    Tokens tokens;
    NamespaceId ns;
    std::uint64_t last_touch = 0;
  };
  Sequence& at(SeqId seq) { return sequences_[static_cast<std::size_t>(seq.value)]; }
  const Sequence& at(SeqId seq) const { return sequences_[static_cast<std::size_t>(seq.value)]; }
  void cut(SeqId seq, TokenPos length);

  engine::Runner& runner_;
  kv::CellMap cells_;
  std::vector<Sequence> sequences_;
  std::uint64_t touches_ = 0;
};

}  // namespace coppice::sched
