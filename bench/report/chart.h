// Charts as inline SVG: bars for named variants, lines where a number grows. Text and lines take the page's colours.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stats/summary.h"

namespace coppice::bench {

struct ChartPoint {
  std::string label;
  std::optional<double> x;
};

struct ChartSeries {
  std::string name;
  std::vector<std::optional<Summary>> values;  // one for each point
};

struct Chart {
  std::string title, unit, x_label;
  std::vector<ChartPoint> points;
  std::vector<ChartSeries> series;
  bool more_is_better = false;
};

// Lines if there are two points at least and all have an x, bars otherwise. Whiskers go from minimum to maximum.
std::string svg_of(const Chart& chart);

// For text between tags and in attributes.
std::string escape_html(std::string_view text);

}  // namespace coppice::bench
