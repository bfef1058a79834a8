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
constexpr std::size_t kHeadBytes = 8;  // a magic number and the sequence's id, before all else

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
  if (rewind_ != Rewind::anywhere) empty_rest_ = write(kRest);
}

std::vector<std::byte> LlamaRanges::write(llama_state_seq_flags flags) const {
  std::vector<std::byte> bytes = take_buffer(llama_state_seq_get_size_ext(context_, kScratch, flags));
  const std::size_t written = llama_state_seq_get_data_ext(context_, reinterpret_cast<std::uint8_t*>(bytes.data()),
                                                           bytes.size(), kScratch, flags);
  if (written != bytes.size()) bytes.clear();
  return bytes;
}

bool LlamaRanges::read(llama_seq_id seq, std::span<const std::byte> bytes, llama_state_seq_flags flags) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return llama_state_seq_set_data_ext(context_, from, bytes.size(), seq, flags) == bytes.size();
}

void LlamaRanges::copy(llama_seq_id from, TokenPos begin, TokenPos end) {
  llama_memory_seq_cp(memory_, from, kScratch, begin, end);
}

void LlamaRanges::clear_scratch() { llama_memory_seq_rm(memory_, kScratch, -1, -1); }

// The scratch sequence's, with an empty rest.
std::vector<std::byte> LlamaRanges::write_cells() {
  // A recurrent state can be large; taken out before, it is not written only to be cut off. (A window stays.)
  if (!read(kScratch, empty_rest_, kRest)) return {};
  std::vector<std::byte> cells = write(kWhole);
  const std::size_t rest = llama_state_seq_get_size_ext(context_, kScratch, kRest);
  if (rest < kHeadBytes || cells.size() + kHeadBytes < rest || empty_rest_.size() < kHeadBytes) return {};
  cells.resize(cells.size() + kHeadBytes - rest);
  cells.insert(cells.end(), empty_rest_.begin() + kHeadBytes, empty_rest_.end());
  return cells;
}

std::vector<std::byte> LlamaRanges::save(llama_seq_id seq, TokenPos begin, TokenPos end, SaveKind kind) {
  assert(0 <= begin && begin < end);
  std::vector<std::byte> bytes;
  try {
    if (rewind_ == Rewind::anywhere) {
      copy(seq, begin, end);
      bytes = write(kWhole);
    } else {
      std::vector<std::byte> state;
      if (kind == SaveKind::checkpoint) {
        // Of attention layers with a window, all that the token at `end` will look at.
        copy(seq, rewind_ == Rewind::window ? std::max(0, end - n_window_) : begin, end);
        state = write(kRest);
        if (rewind_ == Rewind::window) clear_scratch();
      }
      if (kind == SaveKind::cells || rewind_ == Rewind::window) copy(seq, begin, end);
      const std::vector<std::byte> cells = write_cells();
      if (!cells.empty() && (kind == SaveKind::cells || !state.empty())) {
        const PartSizes sizes{cells.size(), state.size()};
        bytes.resize(sizeof sizes + cells.size() + state.size());
        std::memcpy(bytes.data(), &sizes, sizeof sizes);
        std::ranges::copy(cells, bytes.begin() + sizeof sizes);
        std::ranges::copy(state, bytes.begin() + static_cast<std::ptrdiff_t>(sizeof sizes + cells.size()));
      }
    }
  } catch (const std::exception&) {
    bytes.clear();
  }
  clear_scratch();
  return bytes;
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
