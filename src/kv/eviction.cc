#include "kv/eviction.h"

#include <cmath>
#include <tuple>

namespace coppice::kv {
double RecomputeCostPolicy::worth(const Evictable& s, Shortage shortage) const {
  constexpr double kFade_s = 60, kSession = 4, kUsedBefore = 4, kTwiceAsLikelyAt = 2048, kTwiceAsDearAt = 8192;
  double chance = (1 + s.length / kTwiceAsLikelyAt) / std::sqrt(1 + to_s(s.idle) / kFade_s);
  if (s.session_alive) chance *= kSession;
  if (s.uses > 0) chance *= kUsedBefore;
  const double token_cost = 1 + s.length / kTwiceAsDearAt;
  return chance * token_cost * (shortage == Shortage::cells ? 1 : s.exclusive);
}

std::optional<SeqId> choose_victim(std::span<const Evictable> sequences, Shortage shortage,
                                   const EvictionPolicy& policy) {
  std::optional<SeqId> victim;
  std::tuple<bool, bool, double, std::uint64_t> least;
  for (const Evictable& s : sequences) {
    const bool frees_nothing = shortage == Shortage::cells && s.exclusive == 0;
    const std::tuple worth(frees_nothing, s.wanted, policy.worth(s, shortage), s.last_touch);
    if (victim && worth >= least) continue;
    victim = s.seq;
    least = worth;
  }
  return victim;
}

}  // namespace coppice::kv
