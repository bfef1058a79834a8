// A block: the KV of a fixed number of consecutive tokens, as bytes, under a name that only these tokens behind this
// very beginning can have (spec B20).
//
//   root --- [256 tokens] --- [256 tokens] --- [90 tokens]       a turn's end
//                       `---- [256 tokens] ...                   another conversation with the same beginning
//
// A block's id is SHA-256 over its parent's id and its tokens; the first block's parent is a root, which stands for all
// that KV depends on besides the tokens. So equal ids mean equal KV, however and by whomever it was computed, and a
// prefix that many conversations share is stored once. A block of fewer tokens than Options::block_tokens ends a turn
// exactly; nothing goes on from it.
//
// Where a sequence's state cannot be cut (recurrent, hybrid, sliding-window models; spec B21) cells alone are not
// enough to go on from. There a chain is made of full blocks of cells, and a checkpoint ends it: the cells behind the
// last full block, 1 to block_tokens of them, and the state at their end. One chain can have many checkpoints on its
// way:
//
//   root --- [256 cells] --- [256 cells] --- [checkpoint at 602]
//                       `--- [checkpoint at 300]
//
// Threading: values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace coppice::tier {

using BlockId = std::array<unsigned char, 32>;

// The lowest bit of an id's first byte tells the kind, so that whoever has an id knows it.
enum class BlockKind : std::uint8_t { cells, checkpoint };
constexpr BlockKind kind_of(const BlockId& id) { return (id[0] & 1U) != 0 ? BlockKind::checkpoint : BlockKind::cells; }

struct BlockIdHash {
  std::size_t operator()(const BlockId& id) const noexcept {
    std::size_t value = 0;  // any part of a digest is as good as a hash of it
    std::memcpy(&value, id.data(), sizeof value);
    return value;
  }
};

// What a runner saved. Shared, so that the disk's thread can write what the engine has already let go of.
using Payload = std::shared_ptr<const std::vector<std::byte>>;

struct Block {
  BlockId id{}, parent{};
  TokenPos begin = 0;  // position of the first token; 0: the parent is a root
  Tokens tokens;
  Payload state;
};

// `fingerprint`: model, KV types, rope, adapters, llama.cpp's version: all that makes KV bytes mean something else.
// `name_space`: spec B24; it should be keyed with Tiers::secret(), so that nobody can work out another's ids.
BlockId root_of(std::string_view fingerprint, std::string_view name_space);
BlockId id_of(const BlockId& parent, std::span<const Token> tokens, BlockKind kind = BlockKind::cells);
// Whether the id is that of a block with these tokens, of either kind.
bool names(const BlockId& id, const BlockId& parent, std::span<const Token> tokens);

std::string hex(const BlockId& id);
std::string short_hex(const BlockId& id);  // for people: the first 8 bytes

}  // namespace coppice::tier
