#include "sched/batch_plan.h"

#include <algorithm>

namespace coppice::sched {

std::vector<TokenPos> share_prefill(std::span<const PrefillNeed> needs, TokenPos budget) {
  std::vector<TokenPos> shares(needs.size(), 0);
  if (needs.empty() || budget <= 0) return shares;

  const auto shortest = std::min_element(
      needs.begin(), needs.end(), [](const PrefillNeed& a, const PrefillNeed& b) { return a.urgent < b.urgent; });
  const TokenPos reserved = std::min(shortest->urgent, (budget + 1) / 2);
  shares[static_cast<std::size_t>(shortest - needs.begin())] = reserved;
  TokenPos left = budget - reserved;

  for (std::size_t i = 0; i < needs.size() && left > 0; ++i) {
    const TokenPos more = std::min(needs[i].remaining - shares[i], left);
    shares[i] += more;
    left -= more;
  }
  return shares;
}

}  // namespace coppice::sched
