// What a tier gives up first when its bytes run out (spec B19 for blocks). Pure: the tree describes a block at the end
// of its chain, the policy says how much each of its bytes is worth.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/ids.h"

namespace coppice::tier {

struct Candidate {
  Duration age{0};         // since it was last used
  std::uint32_t uses = 0;  // times a request started from it
  TokenPos tokens = 0;
  TokenPos end = 0;  // position behind its last token
  std::uint64_t bytes = 0;
  bool on_disk_too = false;  // giving it up costs a read later, not a recomputation
};

class BlockEvictionPolicy {
 public:
  virtual ~BlockEvictionPolicy() = default;
  // Per byte; the block worth least goes first. Finite, >= 0.
  virtual double worth(const Candidate& block) const = 0;
  // Of how many blocks, the longest unused first, the one worth least is looked for. More cost more for each eviction,
  // and the oldest are nearly always worth least.
  virtual int candidates_max() const { return 32; }
};

// chance of being asked for again  x  cost of getting it back  /  bytes
//
// Chance and cost of computing are those of kv/eviction.h: the chance falls with the square root of the age and is 4
// times higher once the block has been used; a token's cost doubles at position 8,192. Reading a block back is taken to
// cost a twentieth of computing it, a cautious figure: restoring ran hundreds of times faster than computing on a small
// model, and the ratio grows with the model.
class RecomputeOrReadPolicy final : public BlockEvictionPolicy {
 public:
  double worth(const Candidate& block) const override;
};

}  // namespace coppice::tier
