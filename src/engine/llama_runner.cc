// Runner on llama.h with one unified set of cells.
//
// What llama.cpp v0.4.0's memories do, which decides what can be shared and cut:
//
// attention (unified): seq_cp adds the target to each of the source's cells in the range, seq_rm takes a sequence out
// of cells and frees those that nobody holds. Any range, exact.
//
// sliding window: two such caches. The one of the window layers may reuse a cell that a single sequence holds and that
// its window has left behind; when it does, it drops everything before that position from the sequence, so what the
// sequence holds stays without gaps, and seq_pos_min tells where it begins. seq_cp copies what is there and says
// nothing about what is not; seq_rm always succeeds.
//
// recurrent, hybrid: one state per sequence, at its end. seq_cp ignores the range: the target gets the source's whole
// state (without a copy until one of them goes on). seq_rm of a tail returns false and changes nothing, but seq_rm of a
// part in the middle "succeeds" for the state without undoing anything.
//
// Ranges are saved through a scratch sequence (llama_ranges.h): llama.cpp's id 0, and our SeqIds are shifted by one.
//
// DeepSeek V4: compressed blocks; seq_cp aborts for anything but a whole sequence, seq_rm of a tail fails.
#include "engine/llama_runner.h"

#include <llama.h>

#include <algorithm>
#include <cassert>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "common.h"
#include "engine/llama_ranges.h"
#include "engine/llama_sampler.h"

namespace coppice::engine {
namespace {

// A llama_batch over buffers that are allocated once.
class Batch {
 public:
  explicit Batch(TokenPos capacity) {
    const auto n = static_cast<std::size_t>(capacity);
    tokens_.resize(n);
    positions_.resize(n);
    seqs_.resize(n);
    seq_pointers_.resize(n);
    seq_counts_.assign(n, 1);
    wanted_.resize(n);
    for (std::size_t i = 0; i < n; ++i) seq_pointers_[i] = &seqs_[i];
  }

  llama_batch fill(std::span<const BatchItem> items, llama_seq_id first_seq) {
    assert(items.size() <= tokens_.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      tokens_[i] = items[i].token;
      positions_[i] = items[i].pos;
      seqs_[i] = items[i].seq.value + first_seq;
      wanted_[i] = items[i].want_logits ? 1 : 0;
    }
    return {.n_tokens = static_cast<std::int32_t>(items.size()),
            .token = tokens_.data(),
            .embd = nullptr,
            .pos = positions_.data(),
            .n_seq_id = seq_counts_.data(),
            .seq_id = seq_pointers_.data(),
            .logits = wanted_.data()};
  }

 private:
  std::vector<llama_token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<llama_seq_id> seqs_;
  std::vector<llama_seq_id*> seq_pointers_;
  std::vector<std::int32_t> seq_counts_;
  std::vector<std::int8_t> wanted_;
};

class LlamaRunner final : public Runner {
 public:
  explicit LlamaRunner(LlamaModel& model)
      : model_(model.model()),
        context_(model.context()),
        memory_(llama_get_memory(context_)),
        n_window_(llama_model_n_swa(model_)),
        batch_(static_cast<TokenPos>(llama_n_batch(context_))),
        window_begin_(llama_max_parallel_sequences(), 0),
        cells_only_(llama_max_parallel_sequences(), false) {
    info_.n_cells = static_cast<TokenPos>(llama_n_ctx(context_));
    info_.n_batch = static_cast<TokenPos>(llama_n_batch(context_));
    info_.n_ubatch = static_cast<TokenPos>(llama_n_ubatch(context_));
    probe();
    info_.n_seqs = n_seqs_usable();
    const bool spare = info_.n_seqs > static_cast<std::int32_t>(llama_n_seq_max(context_)) || !rewinds_anywhere();
    if (memory_ != nullptr && info_.n_seqs > model.n_slots() && spare) {
      first_seq_ = 1;
      --info_.n_seqs;
      llama_memory_clear(memory_, false);
      ranges_.emplace(context_, info_.rewind, n_window_);
      info_.saves_ranges = probe_saving();
    }
    info_.n_seqs = std::min(info_.n_seqs, model.n_sequences_max());
  }

  const RunnerInfo& info() const override { return info_; }
  void share(SeqId from, SeqId to, TokenPos begin, TokenPos end) override;
  bool remove(SeqId seq, TokenPos begin, TokenPos end) override;
  void clear(SeqId seq) override;
  bool can_resume(SeqId seq, TokenPos length, TokenPos at) const override;
  void share_cells(SeqId from, SeqId to, TokenPos end) override;
  std::vector<std::byte> save(SeqId seq, TokenPos begin, TokenPos end, SaveKind kind) override;
  bool restore(SeqId seq, TokenPos begin, TokenPos end, const Saved& saved) override;
  DecodeStatus decode(std::span<const BatchItem> batch) override;
  Sampled sample(Sampler& sampler, std::int32_t index, const ProbsOptions& probs) override;

 private:
  void probe();
  std::int32_t n_seqs_usable();
  bool probe_saving();
  llama_seq_id id(SeqId seq) const { return seq.value + first_seq_; }
  bool is_valid(SeqId seq) const { return seq.value >= 0 && seq.value < info_.n_seqs; }
  bool rewinds_anywhere() const { return info_.rewind == Rewind::anywhere; }
  void set_cells_only(SeqId seq, bool value) { cells_only_[static_cast<std::size_t>(seq.value)] = value; }
  bool cells_only(SeqId seq) const { return cells_only_[static_cast<std::size_t>(seq.value)]; }
  TokenPos& window_begin(SeqId seq) { return window_begin_[static_cast<std::size_t>(seq.value)]; }

  const llama_model* model_;
  llama_context* context_;
  llama_memory_t memory_;
  TokenPos n_window_;  // sliding window in tokens; 0: none
  Batch batch_;
  RunnerInfo info_;
  llama_seq_id first_seq_ = 0;  // llama.cpp's id of SeqId 0; 1: its 0 is the scratch sequence
  // Window models: what a sequence holds below this position may have a gap, whatever seq_pos_min says. A gap comes
  // from sharing a range whose source holds less of the window than the target did before.
  std::vector<TokenPos> window_begin_;
  std::vector<bool> cells_only_;       // by SeqId: decoding cannot go on there before a checkpoint is restored
  std::optional<LlamaRanges> ranges_;  // none: there is no sequence to spare
};

// Finds out by trying: two tokens are evaluated in an empty sequence and the second one is taken back.
void LlamaRunner::probe() {
  info_.rewind = Rewind::never;
  if (memory_ == nullptr) return;
  const SeqId seq{0};
  llama_memory_clear(memory_, false);
  const auto grown = [&](TokenPos pos) -> std::size_t {
    const BatchItem item{.token = 0, .pos = pos, .seq = seq, .want_logits = true};
    return decode({&item, 1}) == DecodeStatus::ok ? llama_state_seq_get_size(context_, seq.value) : 0;
  };
  const std::size_t one = grown(0);
  const std::size_t two = one > 0 ? grown(1) : 0;
  if (two > one) {
    const bool windowed = n_window_ > 0;
    // Beside K and V, a saved cell has three numbers of 4 bytes in each cache: position, count and id of its sequences.
    // (Models with two-dimensional positions have three more, which are a small error here.)
    const std::size_t bookkeeping = windowed ? 24 : 12;
    info_.bytes_per_cell = two - one > bookkeeping ? two - one - bookkeeping : 0;
  }
  const bool moves_forward_only = llama_model_is_recurrent(model_) || llama_model_is_hybrid(model_) ||
                                  llama_n_rs_seq(context_) > 0;  // a rewind of a few tokens, and only once
  if (two > 0 && !moves_forward_only && llama_memory_seq_rm(memory_, seq.value, 1, -1)) {
    // --swa-full gives the window cache as many cells as the other one, but it still reuses those that a window has
    // left behind. So such a context is asked what it holds, too; it mostly holds everything.
    info_.rewind = n_window_ > 0 ? Rewind::window : Rewind::anywhere;
  }
  llama_memory_clear(memory_, false);
}

// A context is made for n_seq_max sequences: that many recurrent states, sliding windows, rows of logits. A unified
// attention cache has none of the first two, and its cells know every id up to llama.cpp's limit, so it takes them all
// (and a context for 256 would cost 256 rows of logits). Tried here, as it is nowhere promised. NOTE: reading a saved
// state into such an id works, writing one from it does not; copy it to a low one first.
std::int32_t LlamaRunner::n_seqs_usable() {
  const auto made_for = static_cast<std::int32_t>(llama_n_seq_max(context_));
  const auto limit = static_cast<std::int32_t>(llama_max_parallel_sequences());
  if (info_.rewind != Rewind::anywhere || made_for < 2) return made_for;
  const BatchItem item{.token = 0, .pos = 0, .seq = SeqId{limit - 1}, .want_logits = true};
  llama_memory_clear(memory_, false);
  bool works = decode({&item, 1}) == DecodeStatus::ok;
  if (works) {
    llama_memory_seq_cp(memory_, limit - 1, limit - 2, 0, 1);
    works = llama_memory_seq_rm(memory_, limit - 1, -1, -1) && llama_memory_seq_pos_max(memory_, limit - 1) == -1 &&
            llama_memory_seq_pos_max(memory_, limit - 2) == 0;
  }
  llama_memory_clear(memory_, false);
  return works ? limit : made_for;
}

void LlamaRunner::share(SeqId from, SeqId to, TokenPos begin, TokenPos end) {
  assert(is_valid(from) && is_valid(to) && from != to);
  assert(begin >= 0 && begin <= end);
  if (begin >= end) return;
  if (info_.rewind == Rewind::never) {
    // All or nothing: the state of `from` stands for its tokens from 0 on, those before `begin` included.
    clear(to);
    llama_memory_seq_cp(memory_, id(from), id(to), -1, -1);
    return;
  }
  if (info_.rewind == Rewind::window) {
    const TokenPos held_from = std::max(window_begin(from), llama_memory_seq_pos_min(memory_, id(from)));
    window_begin(to) = begin == 0 ? window_begin(from) : held_from > begin ? held_from : window_begin(to);
  }
  llama_memory_seq_cp(memory_, id(from), id(to), begin, end);
}

bool LlamaRunner::remove(SeqId seq, TokenPos begin, TokenPos end) {
  assert(is_valid(seq) && begin >= 0);
  if (memory_ == nullptr) return false;
  const TokenPos last = llama_memory_seq_pos_max(memory_, id(seq));
  if (begin > last || (end >= 0 && end <= begin)) return true;  // nothing there
  const bool to_end = end < 0 || end > last;
  if (begin == 0 && to_end) {
    clear(seq);
    return true;
  }
  if (info_.rewind == Rewind::never) return false;
  if (info_.rewind == Rewind::window && to_end && !can_resume(seq, last + 1, begin)) return false;
  return llama_memory_seq_rm(memory_, id(seq), begin, to_end ? -1 : end);
}

void LlamaRunner::clear(SeqId seq) {
  assert(is_valid(seq));
  if (memory_ == nullptr) return;
  llama_memory_seq_rm(memory_, id(seq), -1, -1);
  window_begin(seq) = 0;
  set_cells_only(seq, false);
}

bool LlamaRunner::can_resume(SeqId seq, TokenPos length, TokenPos at) const {
  assert(is_valid(seq));
  if (at == 0) return true;
  if (cells_only(seq)) return false;
  if (at == length) return true;
  if (at < 0 || at > length || info_.rewind == Rewind::never) return false;
  if (info_.rewind == Rewind::anywhere) return true;
  // The token at `at` attends to the n_window_ tokens that end with itself. (A chunked window reaches back less.)
  const TokenPos held_from = llama_memory_seq_pos_min(memory_, id(seq));
  const TokenPos whole_from = std::max(held_from, window_begin_[static_cast<std::size_t>(seq.value)]);
  return held_from >= 0 && whole_from <= std::max(0, at - n_window_ + 1);
}

// Tries what the tiers do: two tokens of one sequence, as cells and as a checkpoint, make another one that goes on like
// the first.
bool LlamaRunner::probe_saving() {
  llama_memory_clear(memory_, false);
  const SeqId writer{info_.n_seqs - 1}, reader{0};
  const auto evaluate = [&](SeqId seq, TokenPos pos) {
    const BatchItem item{.token = 0, .pos = pos, .seq = seq, .want_logits = true};
    return decode({&item, 1}) == DecodeStatus::ok;
  };
  bool works = evaluate(writer, 0) && evaluate(writer, 1);
  if (works) {
    const std::vector<std::byte> cells = save(writer, 0, 1, SaveKind::cells);
    const std::vector<std::byte> checkpoint = save(writer, 1, 2, SaveKind::checkpoint);
    works = !cells.empty() && !checkpoint.empty() && restore(reader, 0, 1, {0, 1, cells}) &&
            restore(reader, 1, 2, {1, 2, checkpoint}) && can_resume(reader, 2, 2) &&
            llama_memory_seq_pos_max(memory_, id(reader)) == 1 &&
            llama_memory_seq_pos_max(memory_, LlamaRanges::kScratch) == -1 && evaluate(reader, 2);
  }
  llama_memory_clear(memory_, false);
  set_cells_only(reader, false);
  return works;
}

void LlamaRunner::share_cells(SeqId from, SeqId to, TokenPos end) {
  assert(is_valid(from) && is_valid(to) && from != to && end > 0 && !rewinds_anywhere());
  clear(to);
  // Of a recurrent memory `to` gets the state at `from`'s end, too. It is replaced before it is used.
  llama_memory_seq_cp(memory_, id(from), id(to), 0, end);
  set_cells_only(to, true);
}

std::vector<std::byte> LlamaRunner::save(SeqId seq, TokenPos begin, TokenPos end, SaveKind kind) {
  assert(is_valid(seq) && info_.n_seqs > 0 && ranges_);
  return ranges_->save(id(seq), begin, end, kind);
}

bool LlamaRunner::restore(SeqId seq, TokenPos begin, TokenPos end, const Saved& saved) {
  assert(is_valid(seq) && ranges_ && saved.begin <= begin && begin <= end && end <= saved.end);
  set_cells_only(seq, !rewinds_anywhere());
  if (!ranges_->restore_cells(id(seq), begin, end, saved)) {
    if (begin == 0) clear(seq);
    return false;
  }
  if (rewinds_anywhere() || end < saved.end || !LlamaRanges::holds_state(saved.bytes)) return true;
  if (!ranges_->restore_state(id(seq), saved)) return false;
  set_cells_only(seq, false);
  // What lies before the window was not saved, and seq_pos_min tells where that begins.
  window_begin(seq) = 0;
  return true;
}

DecodeStatus LlamaRunner::decode(std::span<const BatchItem> batch) {
  assert(!batch.empty() && batch.size() <= static_cast<std::size_t>(info_.n_batch));
  for (const BatchItem& item : batch) assert(!cells_only(item.seq));
  try {
    // 1: no room, the memory is as before; 2: aborted; below 0: a bad batch or a failure of the backend.
    const std::int32_t code = llama_decode(context_, batch_.fill(batch, first_seq_));
    return code == 0 ? DecodeStatus::ok : code == 1 ? DecodeStatus::no_cells : DecodeStatus::failed;
  } catch (const std::exception&) {
    return DecodeStatus::failed;
  }
}

Sampled LlamaRunner::sample(Sampler& sampler, std::int32_t index, const ProbsOptions& probs) {
  return static_cast<LlamaSampler&>(sampler).sample(context_, index, probs);
}

}  // namespace

std::unique_ptr<Runner> make_llama_runner(LlamaModel& model) { return std::make_unique<LlamaRunner>(model); }

}  // namespace coppice::engine
