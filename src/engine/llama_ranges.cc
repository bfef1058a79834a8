#include "engine/llama_ranges.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>

#include "base/byte_buffers.h"

namespace coppice::engine {
namespace {

constexpr llama_state_seq_flags kWhole = 0, kRest = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
constexpr std::size_t kRestHeadBytes = 8;  // a magic number and the sequence's id, before all else

// Before the two parts of a checkpoint, and before cells where the two are told apart.
struct PartSizes {
  std::uint64_t cells = 0, state = 0;  // bytes
};

}  // namespace

struct LlamaRanges::Parts {
  std::span<const std::byte> cells, state;

  static std::optional<Parts> of(std::span<const std::byte> bytes) {
    PartSizes sizes;
    if (bytes.size() < sizeof sizes) return std::nullopt;
    std::memcpy(&sizes, bytes.data(), sizeof sizes);
    const std::uint64_t left = bytes.size() - sizeof sizes;
    if (sizes.cells > left || sizes.state != left - sizes.cells) return std::nullopt;
    bytes = bytes.subspan(sizeof sizes);
    return Parts{bytes.first(sizes.cells), bytes.subspan(sizes.cells)};
  }
};

LlamaRanges::LlamaRanges(llama_context* context, Rewind rewind, TokenPos n_window)
    : context_(context), memory_(llama_get_memory(context)), rewind_(rewind), n_window_(n_window) {
  if (rewind_ == Rewind::anywhere) return;
  empty_rest_.resize(size(kRest));
  if (!write(empty_rest_, kRest)) empty_rest_.clear();
}

std::size_t LlamaRanges::size(llama_state_seq_flags flags) const {
  return llama_state_seq_get_size_ext(context_, kScratch, flags);
}

// REQUIRES: `to` has size(flags) bytes.
bool LlamaRanges::write(std::span<std::byte> to, llama_state_seq_flags flags) const {
  auto* bytes = reinterpret_cast<std::uint8_t*>(to.data());
  return llama_state_seq_get_data_ext(context_, bytes, to.size(), kScratch, flags) == to.size();
}

bool LlamaRanges::read(llama_seq_id seq, std::span<const std::byte> bytes, llama_state_seq_flags flags) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return llama_state_seq_set_data_ext(context_, from, bytes.size(), seq, flags) == bytes.size();
}

// Has the scratch sequence hold the range of `seq` and nothing else.
void LlamaRanges::take(llama_seq_id seq, TokenPos begin, TokenPos end) {
  clear_scratch();
  llama_memory_seq_cp(memory_, seq, kScratch, begin, end);
}

void LlamaRanges::clear_scratch() { llama_memory_seq_rm(memory_, kScratch, -1, -1); }

std::vector<std::byte> LlamaRanges::save(llama_seq_id seq, TokenPos begin, TokenPos end, SaveKind kind) {
  assert(0 <= begin && begin < end);
  std::vector<std::byte> bytes;
  try {
    bytes = rewind_ == Rewind::anywhere ? save_whole(seq, begin, end) : save_parts(seq, begin, end, kind);
  } catch (const std::exception&) {
    bytes.clear();
  }
  clear_scratch();
  return bytes;
}

std::vector<std::byte> LlamaRanges::save_whole(llama_seq_id seq, TokenPos begin, TokenPos end) {
  take(seq, begin, end);
  std::vector<std::byte> bytes = take_buffer(size(kWhole));
  if (!write(bytes, kWhole)) bytes.clear();
  return bytes;
}

std::vector<std::byte> LlamaRanges::save_parts(llama_seq_id seq, TokenPos begin, TokenPos end, SaveKind kind) {
  // Of attention layers with a window the state is all that the token at `end` will look at.
  const TokenPos state_begin = rewind_ == Rewind::window ? std::max(0, end - n_window_) : begin;
  PartSizes sizes;
  if (kind == SaveKind::checkpoint) {
    take(seq, state_begin, end);
    sizes.state = size(kRest);
  }
  take(seq, begin, end);
  // A recurrent state can be large; taken out before, it is not written only to be cut off. (A window stays.)
  if (!read(kScratch, empty_rest_, kRest)) return {};
  const std::size_t whole = size(kWhole), rest = size(kRest);
  if (rest < kRestHeadBytes || whole < rest || empty_rest_.size() < kRestHeadBytes) return {};
  const std::size_t cells_end = sizeof sizes + whole - (rest - kRestHeadBytes);
  sizes.cells = cells_end - sizeof sizes + empty_rest_.size() - kRestHeadBytes;
  const std::size_t total = sizeof sizes + sizes.cells + sizes.state;
  std::vector<std::byte> bytes = take_buffer(std::max(sizeof sizes + whole, total));
  const std::span<std::byte> all(bytes);
  std::memcpy(bytes.data(), &sizes, sizeof sizes);
  if (!write(all.subspan(sizeof sizes, whole), kWhole)) return {};
  std::ranges::copy(std::span(empty_rest_).subspan(kRestHeadBytes), all.subspan(cells_end).begin());
  if (kind == SaveKind::checkpoint) {
    take(seq, state_begin, end);
    if (!write(all.subspan(sizeof sizes + sizes.cells, sizes.state), kRest)) return {};
  }
  if (bytes.size() == total) return bytes;
  // What was cut off is not to be held with the rest.
  std::vector<std::byte> exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(total));
  give_buffer(std::move(bytes));
  return exact;
}

bool LlamaRanges::restore_cells(llama_seq_id seq, TokenPos begin, TokenPos end, const Runner::Saved& saved) {
  if (begin == end) return true;
  bool works = false;
  try {
    if (rewind_ == Rewind::anywhere) {
      // Exactly the positions that were said to be in there: the bytes may come from a disk.
      works = read(kScratch, saved.bytes, kWhole) && llama_memory_seq_pos_min(memory_, kScratch) == saved.begin &&
              llama_memory_seq_pos_max(memory_, kScratch) == saved.end - 1;
    } else {
      const auto parts = Parts::of(saved.bytes);
      works = parts && read(kScratch, parts->cells, kWhole);
    }
    if (works) llama_memory_seq_cp(memory_, kScratch, seq, begin, end);
  } catch (const std::exception&) {
    works = false;
  }
  clear_scratch();
  return works;
}

bool LlamaRanges::restore_state(llama_seq_id seq, const Runner::Saved& saved) {
  try {
    const auto parts = Parts::of(saved.bytes);
    return parts && !parts->state.empty() && read(seq, parts->state, kRest) &&
           llama_memory_seq_pos_max(memory_, seq) == saved.end - 1;
  } catch (const std::exception&) {
    return false;
  }
}

bool LlamaRanges::holds_state(std::span<const std::byte> bytes) {
  const auto parts = Parts::of(bytes);
  return parts && !parts->state.empty();
}

}  // namespace coppice::engine
