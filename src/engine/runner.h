// The model and its KV cells, as the scheduler sees them. LlamaRunner runs a real model; FakeRunner computes "logits"
// that are a hash of exactly the cells a sequence can see, so that any wrong sharing changes the output.
//
// Threading: one thread, the engine thread, calls everything but info().
// Invariant: a sequence holds positions 0 .. length-1 without gaps; the caller keeps count of the length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/sampler.h"

namespace coppice::engine {

// What the model's memory can do with the end of a sequence.
enum class Rewind : std::uint8_t {
  anywhere,  // full attention: any tail can be cut off
  window,    // sliding window: a cut is possible while the window before it is still held
  never,     // recurrent or hybrid: the state moves forward only
};

struct RunnerInfo {
  TokenPos n_cells = 0;     // KV cells (tokens), shared by all sequences
  std::int32_t n_seqs = 0;  // valid SeqIds are 0 .. n_seqs - 1
  TokenPos n_batch = 0;     // the most tokens that one decode() takes
  TokenPos n_ubatch = 0;    // the most tokens that the model computes at once
  Rewind rewind = Rewind::anywhere;
  std::uint64_t bytes_per_cell = 0;  // KV bytes per token over all layers; 0 when unknown
  bool saves_ranges = false;         // save() and restore() work
};

// What save() takes of a sequence.
enum class SaveKind : std::uint8_t {
  cells,  // the KV of the range. Where the end of a sequence cannot be cut off anywhere, it is only a part of what is
          // needed to go on
  checkpoint,  // and all else that is needed to go on at its end. The same where cells are enough
};

struct BatchItem {
  Token token = 0;
  TokenPos pos = 0;
  SeqId seq;
  bool want_logits = false;
};

enum class DecodeStatus : std::uint8_t {
  ok,
  no_cells,  // the cells ran out; sequences in the batch are in an unknown state and must be cleared
  failed,    // the backend failed; likewise
};

class Runner {
 public:
  virtual ~Runner() = default;

  virtual const RunnerInfo& info() const = 0;

  // Makes `to` see `from`'s cells at positions [begin, end), by metadata only.
  // REQUIRES: `to` holds nothing in [begin, end); can_resume(from, end). Only where cells can be removed anywhere may
  // `to` hold positions from `end` on.
  virtual void share(SeqId from, SeqId to, TokenPos begin, TokenPos end) = 0;

  // Removes positions [begin, end) of the sequence from it; cells that no sequence sees become free.
  // Returns false and changes nothing if the memory cannot do that. end < 0: to the end of the sequence.
  virtual bool remove(SeqId seq, TokenPos begin, TokenPos end) = 0;

  virtual void clear(SeqId seq) = 0;

  // Whether a sequence holding `length` tokens could be cut to, or shared up to, `at` and decoding continue there.
  // Always at 0; elsewhere not while it holds cells only. Ask right before: with Rewind::window, any decode(), also of
  // other sequences, can turn yes into no for at < length.
  virtual bool can_resume(SeqId seq, TokenPos length, TokenPos at) const = 0;

  // Makes `to` see `from`'s cells [0, end), whether or not decoding could go on there: it cannot, until a checkpoint is
  // restored behind them. REQUIRES: rewind is not `anywhere`; `to` is empty; `from` holds them.
  virtual void share_cells(SeqId from, SeqId to, TokenPos end) = 0;

  // Positions [begin, end) as bytes that restore() takes, in this process or in another one with the same model, KV
  // types and positions; empty if the backend failed. REQUIRES: info().saves_ranges; begin < end; the sequence holds
  // them; for a checkpoint, can_resume() there.
  virtual std::vector<std::byte> save(SeqId seq, TokenPos begin, TokenPos end, SaveKind kind) = 0;

  // Appends positions [begin, end) to the sequence, out of what save() gave for `saved`. Where cells are not enough, a
  // sequence cannot be gone on from (can_resume(), decode()) from then on until a checkpoint is restored up to its end,
  // which may be all that it is for: begin == end. False if the bytes are not usable or there are no
  // `saved.end - saved.begin` free cells: then a sequence that could be gone on from is as before, another one holds
  // nothing of use and has to be cleared. REQUIRES: info().saves_ranges; the sequence ends at `begin`;
  // saved.begin <= begin <= end <= saved.end.
  struct Saved {
    TokenPos begin = 0, end = 0;
    std::span<const std::byte> bytes;
  };
  virtual bool restore(SeqId seq, TokenPos begin, TokenPos end, const Saved& saved) = 0;

  // Evaluates the batch. REQUIRES: 1 <= size <= n_batch; for each sequence, positions continue where it ends.
  virtual DecodeStatus decode(std::span<const BatchItem> batch) = 0;

  // Samples after item `index` of the last batch (which wanted logits), and tells the sampler that its choice was
  // taken.
  virtual Sampled sample(Sampler& sampler, std::int32_t index, const ProbsOptions& probs) = 0;
};

}  // namespace coppice::engine
