// One measured cost: what the simulator's times are fitted from. A file of them is JSON lines: first what was measured
// and where, then a point a line.
//
// Threading: none.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "result.h"

namespace coppice::simulate {

enum class Work : std::uint8_t {
  step,     // a batch was evaluated
  save,     // KV of some tokens, from the cells into host memory
  restore,  // and back
};

struct CostPoint {
  Work work = Work::step;
  int tokens = 0;  // of the batch, or saved, or restored
  int cells = 0;   // in use afterwards, whoever's they are
  double us = 0;
};

struct CostPoints {
  std::string about;  // model, machine, commit: the first line as it stands
  std::vector<CostPoint> points;
};

std::string to_line(const CostPoint& point);
bench::Result<CostPoints> parse_cost_points(std::string_view text);
bench::Result<CostPoints> read_cost_points(const std::filesystem::path& file);

}  // namespace coppice::simulate
