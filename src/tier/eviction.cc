#include "tier/eviction.h"

#include <algorithm>
#include <cmath>

namespace coppice::tier {

double RecomputeOrReadPolicy::worth(const Candidate& block) const {
  constexpr double kFade_s = 60, kUsedBefore = 4, kTwiceAsDearAt = 8192, kReadShare = 0.05;
  double chance = 1 / std::sqrt(1 + std::max(0.0, to_s(block.age)) / kFade_s);
  if (block.uses > 0) chance *= kUsedBefore;
  const double cost = block.tokens * (1 + block.end / kTwiceAsDearAt) * (block.on_disk_too ? kReadShare : 1);
  return chance * cost / static_cast<double>(std::max<std::uint64_t>(block.bytes, 1));
}

}  // namespace coppice::tier
