#include "stats/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace coppice::bench {

double percentile(std::span<const double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

Summary summarize(std::span<const double> values) {
  if (values.empty()) return {};
  return {percentile(values, 0), percentile(values, 0.5), percentile(values, 1), values.size()};
}

}  // namespace coppice::bench
