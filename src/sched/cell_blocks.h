// Which blocks of the tiers stand in the cells: for every sequence the chain of full blocks that it holds, told to the
// tiers as it grows and shrinks. So host memory can leave out what the cells have (tier/block_tree.h), and what a
// sequence is about to lose is known by name.
//
//   grew(), shared()   new full blocks are named and entered
//   shrinks()          they are left, the last one first
//
// Sequences outside the prefix tree are nobody's to reuse and have no blocks. A missing entry costs a copy more in host
// memory, never a wrong answer: what is restored is decided by what the tiers have, what is shared by comparing tokens.
// Owner: Tiering. Threading: the engine thread. Invariant: the chain of a sequence names a beginning of what it holds.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sched/sequences.h"
#include "tier/tiers.h"

namespace coppice::sched {

class CellBlocks final : public SequenceObserver {
 public:
  using RootOf = std::function<const tier::BlockId&(NamespaceId)>;

  // Watches the sequences until it ends. References must outlive it.
  CellBlocks(tier::Tiers& tiers, Sequences& sequences, RootOf root_of);
  ~CellBlocks() override;
  CellBlocks(const CellBlocks&) = delete;
  CellBlocks& operator=(const CellBlocks&) = delete;

  // The block that ends at position `at` of the sequence, the root at 0; nothing if it is not known.
  std::optional<tier::BlockId> before(SeqId seq, TokenPos at) const;
  // Where the first of its blocks begins that no tier has (`durable`: that is not on disk, nor to be); behind the last
  // one if there is none.
  TokenPos first_unsaved(SeqId seq, bool durable) const;

  void grew(SeqId seq) override;
  void shared(SeqId from, SeqId to) override;
  void shrinks(SeqId seq, TokenPos length) override;

  void check_invariants() const;  // asserts

 private:
  using Chain = std::vector<tier::Lease::Held>;
  Chain& chain(SeqId seq) { return chains_[static_cast<std::size_t>(seq.value)]; }
  TokenPos length(const Chain& chain) const { return static_cast<TokenPos>(chain.size()) * tiers_.block_tokens(); }
  bool known(const tier::Lease::Held& held) const;

  tier::Tiers& tiers_;
  Sequences& sequences_;
  RootOf root_of_;
  std::vector<Chain> chains_;  // by SeqId
};

}  // namespace coppice::sched
