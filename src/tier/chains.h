// The conversations in a cache folder, as chains of blocks from a root to where they end. Threading: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "tier/cache_reader.h"

namespace coppice::tier {

struct Chain {
  std::size_t last = 0;  // the block it ends with, by its place in CacheReader::blocks()
  TokenPos tokens = 0, shared_tokens = 0;
  std::uint64_t bytes = 0, own_bytes = 0;  // own: of blocks that are in no other chain
};

// One for each block that nothing goes on from, the one used last first. Blocks with a problem are left out.
std::vector<Chain> chains_of(const std::vector<CachedBlock>& blocks);

}  // namespace coppice::tier
