// Parts of a sequence as bytes, on a memory of llama.cpp's that saves whole sequences only: a part is shared into a
// scratch sequence, which is then written or read as a whole.
//
//   cells        the KV of a range of tokens
//   checkpoint   the same, and what is kept at the end only: recurrent states, the window of sliding-window layers
//
// A saved state of llama.cpp is [head][KV of the attention layers][the rest], and its "partial" form is [head][the
// rest]. So cells are saved without a rest by cutting it off and putting an empty sequence's in its place; a checkpoint
// is cells and a partial state, one after the other. Full attention has no rest, and its cells are saved as they come.
// Whether all that works with a model is tried at start-up (LlamaRunner), as llama.cpp promises none of it.
//
// Owner: LlamaRunner, on the engine thread. Invariant: the scratch sequence is empty between calls. Nothing is thrown.
#pragma once

#include <llama.h>

#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/runner.h"

namespace coppice::engine {

class LlamaRanges {
 public:
  static constexpr llama_seq_id kScratch = 0;  // a state can be written from ids below n_seq_max only

  // REQUIRES: the scratch sequence is empty and stays the caller's gift to this object.
  LlamaRanges(llama_context* context, Rewind rewind, TokenPos n_window);

  // Empty if it failed. REQUIRES: begin < end; for a checkpoint, decoding could go on from `seq` at `end`, and with
  // Rewind::never `seq` ends there.
  std::vector<std::byte> save(llama_seq_id seq, TokenPos begin, TokenPos end, SaveKind kind);

  // Cells [begin, end) of those saved, behind what `seq` holds; none if begin == end.
  bool restore_cells(llama_seq_id seq, TokenPos begin, TokenPos end, const Runner::Saved& saved);
  // Makes `seq` one that decoding goes on from at the checkpoint's end. REQUIRES: it holds all cells before that.
  bool restore_state(llama_seq_id seq, const Runner::Saved& saved);

  // Whether these bytes are a checkpoint.
  static bool holds_state(std::span<const std::byte> bytes);

 private:
  struct Parts;
  std::size_t size(llama_state_seq_flags flags) const;  // of the scratch sequence's state
  bool write(std::span<std::byte> to, llama_state_seq_flags flags) const;
  bool read(llama_seq_id seq, std::span<const std::byte> bytes, llama_state_seq_flags flags);
  std::vector<std::byte> save_whole(llama_seq_id seq, TokenPos begin, TokenPos end);
  std::vector<std::byte> save_parts(llama_seq_id seq, TokenPos begin, TokenPos end, SaveKind kind);
  void take(llama_seq_id seq, TokenPos begin, TokenPos end);
  void clear_scratch();

  llama_context* context_;
  llama_memory_t memory_;
  Rewind rewind_;
  TokenPos n_window_;
  std::vector<std::byte> empty_rest_;  // the partial state of an empty sequence
};

}  // namespace coppice::engine
