// Minimum, median and maximum of repeated measurements, and percentiles.
#pragma once

#include <cstddef>
#include <span>

namespace coppice::bench {

struct Summary {
  double min = 0, median = 0, max = 0;
  std::size_t n = 0;  // 0: nothing was measured, the rest means nothing
};

Summary summarize(std::span<const double> values);

// The value below which `share` (0 to 1) of the values lie, interpolated between neighbours; NaN of nothing.
double percentile(std::span<const double> values, double share);

}  // namespace coppice::bench
