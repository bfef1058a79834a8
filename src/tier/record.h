// A block as bytes in a segment: header, tokens, payload, one after the other (docs/tiers.md has the table). A record
// says by itself what it is, and its checksum covers all of it, so that a wrong place, a torn end or a flipped bit is
// noticed when it is read.
//
// The checksum is XXH3's 128 bits. It guards against accidents, at the speed of memory; a cryptographic hash would be
// the slowest part of a restore. Against people, the folder is the user's alone. Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "tier/block.h"

namespace coppice::tier {

inline constexpr std::size_t kRecordHeaderBytes = 112;
inline constexpr std::uint32_t kFormatVersion = 1;

constexpr std::uint64_t record_size(std::size_t n_tokens, std::uint64_t payload_bytes) {
  return kRecordHeaderBytes + n_tokens * sizeof(Token) + payload_bytes;
}

// Header and tokens of the record; the payload follows as it is. REQUIRES: block.state.
std::vector<std::byte> record_head(const Block& block);

// The block again. `head`: the bytes before the payload. Errors: what is wrong with it.
Result<Block> parse_record(std::span<const std::byte> head, Payload payload);

// For a search among records: the bytes that each begins with, how many come before the payload (nothing if this is no
// record's beginning), and what they say. Nothing of it is checked against the checksum, which the payload is part of.
struct RecordHead {
  Block block;  // without state
  std::uint64_t payload_bytes = 0;
};
std::span<const std::byte> record_mark();
std::optional<std::size_t> record_head_size(std::span<const std::byte> beginning);
std::optional<RecordHead> parse_record_head(std::span<const std::byte> head);

}  // namespace coppice::tier
