// Minimum, median and maximum of repeated measurements, percentiles, and ratios of two alternating series.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace coppice::bench {

struct Summary {
  double min = 0, median = 0, max = 0;
  std::size_t n = 0;  // 0: nothing was measured, the rest means nothing
};

Summary summarize(std::span<const double> values);

// The value below which `share` (0 to 1) of the values lie, interpolated between neighbours; NaN of nothing.
double percentile(std::span<const double> values, double share);

// The i-th of `values` over the i-th of `base`: two measurements that were taken right after one another, so that a
// slower hour of the machine cancels out. Pairs without a partner or with a base of 0 are left out.
std::vector<double> paired_ratios(std::span<const double> values, std::span<const double> base);

}  // namespace coppice::bench
