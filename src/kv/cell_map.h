// Which sequences share which KV cells, so that used cells can be counted exactly.
//
// A cell is the KV of one token at one position. A sequence is a list of extents: runs of cells at consecutive
// positions that are held by exactly the same sequences. Sharing splits extents at its ends and counts one more holder;
// it copies nothing and costs O(extents), however long the prefix is. llama.cpp keeps the same facts per cell, but
// offers no count.
//
// Owner: the scheduler, which mirrors every call that it makes on the runner. Threading: the engine thread.
// Invariants (check_invariants):
//   1. the extents of a sequence are in order of position and do not overlap
//   2. an extent's holder count equals the number of sequences that list it
//   3. used() is the sum of the lengths of all extents with holders
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"

namespace coppice::kv {

class CellMap {
 public:
  explicit CellMap(std::int32_t n_seqs);

  // Adds `count` new cells at the end of the sequence.
  void append(SeqId seq, TokenPos count);

  // Makes `to` a holder of `from`'s cells in [begin, end).
  // REQUIRES: from != to; `from` holds all of [begin, end), `to` holds none of it.
  void share(SeqId from, SeqId to, TokenPos begin, TokenPos end);

  // Lets go of the sequence's cells in [begin, end); those without another holder become free.
  void remove(SeqId seq, TokenPos begin, TokenPos end);

  TokenPos used() const { return used_; }

  // Where the sequence ends: one past its last position, 0 when it holds nothing.
  TokenPos length(SeqId seq) const;

  // Cells that only this sequence holds.
  TokenPos exclusive(SeqId seq) const;

  // Cells that remain if every sequence but these were cleared, and each of these were cut to its `upto`.
  struct Keep {
    SeqId seq;
    TokenPos upto = 0;
  };
  TokenPos kept_by(std::span<const Keep> keeps) const;

  // Cells at the end of the sequence that only it holds, up to the last one that another one sees.
  TokenPos exclusive_tail(SeqId seq) const;

  // The first run of positions in [begin, end) where the two hold different cells; nothing if they share all of them.
  // REQUIRES: both hold all of [begin, end).
  struct Range {
    TokenPos begin = 0, end = 0;
  };
  std::optional<Range> first_difference(SeqId a, SeqId b, TokenPos begin, TokenPos end) const;

  void check_invariants() const;  // asserts

 private:
  using ExtentId = std::int32_t;
  struct Extent {
    TokenPos begin = 0, length = 0;
    std::int32_t holders = 0;  // 0: on the free list
    TokenPos end() const { return begin + length; }
  };

  Extent& extent(ExtentId id) { return extents_[static_cast<std::size_t>(id)]; }
  const Extent& extent(ExtentId id) const { return extents_[static_cast<std::size_t>(id)]; }
  std::vector<ExtentId>& list(SeqId seq) { return seqs_[static_cast<std::size_t>(seq.value)]; }
  const std::vector<ExtentId>& list(SeqId seq) const { return seqs_[static_cast<std::size_t>(seq.value)]; }

  ExtentId make_extent(TokenPos begin, TokenPos length, std::int32_t holders);
  void split(SeqId seq, TokenPos at);

  std::vector<Extent> extents_;
  std::vector<ExtentId> free_;
  std::vector<std::vector<ExtentId>> seqs_;
  TokenPos used_ = 0;
};

}  // namespace coppice::kv
