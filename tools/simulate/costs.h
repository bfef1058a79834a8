// How long the simulated machine takes for what it is asked to do, fitted from measured points.
//
// Threading: none. Pure arithmetic.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/clock.h"
#include "simulate/cost_point.h"

namespace coppice::simulate {

// A step of `n` tokens with `c` cells in use costs  a + b n + d c + e n c:  llama.cpp attends over all cells up to the
// highest, whoever's they are. Prompts and the few tokens of a step that only decodes are fitted apart, as they run
// through other kernels. Copying n tokens costs  a + b n.
class Costs {
 public:
  using Line = std::array<double, 4>;  // microseconds: a, b, d, e

  // From all of the points. An error in words if there are too few of a kind.
  static bench::Result<Costs> fit(std::span<const CostPoint> points);

  Duration step(int tokens, int cells) const;
  Duration save(int tokens) const { return at(save_, tokens, 0); }
  Duration restore(int tokens) const { return at(restore_, tokens, 0); }
  double us(const CostPoint& point) const;  // what it says where that was measured

  const Line& decoding() const { return few_; }
  const Line& prompts() const { return many_; }
  const Line& saving() const { return save_; }
  const Line& restoring() const { return restore_; }

 private:
  static Duration at(const Line& line, int tokens, int cells);
  const Line& line_of(Work work, int tokens) const;

  Line few_{}, many_{}, save_{}, restore_{};
};

// How far a fit is from points that it was not made from, as shares of what was measured.
struct FitError {
  double mean = 0, worst = 0;
  std::size_t n = 0;
};

// Each third point is held back, the others are fitted. By kind of work: steps that decode, steps of prompts, saving,
// restoring.
struct HeldBack {
  FitError decoding, prompts, saving, restoring;
};
bench::Result<HeldBack> held_back_error(std::span<const CostPoint> points);

}  // namespace coppice::simulate
