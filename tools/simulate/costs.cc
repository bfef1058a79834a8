#include "simulate/costs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

namespace coppice::simulate {
namespace {

// Tokens of the largest step that is taken to decode only. Up to 8 were measured.
constexpr int kFewMax = 8;

using Line = Costs::Line;

Line features(int tokens, int cells) {
  const double n = tokens, c = cells;
  return {1, n, c, n * c};
}

// Gauss-Jordan with pivoting. Nothing if the equations do not say enough.
std::optional<Line> solve(std::array<std::array<double, 5>, 4> m, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto pivot =
        std::max_element(m.begin() + static_cast<std::ptrdiff_t>(i), m.begin() + static_cast<std::ptrdiff_t>(n),
                         [i](const auto& a, const auto& b) { return std::abs(a[i]) < std::abs(b[i]); });
    std::swap(m[i], *pivot);
    if (std::abs(m[i][i]) < 1e-12) return std::nullopt;
    for (std::size_t row = 0; row < n; ++row) {
      if (row == i) continue;
      const double factor = m[row][i] / m[i][i];
      for (std::size_t column = i; column < 5; ++column) m[row][column] -= factor * m[i][column];
    }
  }
  Line line{};
  for (std::size_t i = 0; i < n; ++i) line[i] = m[i][4] / m[i][i];
  return line;
}

// Least squares of the relative error, with the first `n` features. They are scaled, as cells are thousands and
// tokens are few.
std::optional<Line> least_squares(std::span<const CostPoint> points, std::size_t n,
                                  const std::function<bool(const CostPoint&)>& of_this_kind) {
  constexpr Line kScale{1, 1e2, 1e4, 1e6};
  std::array<std::array<double, 5>, 4> sums{};
  std::size_t n_points = 0;
  for (const CostPoint& p : points) {
    if (!of_this_kind(p)) continue;
    ++n_points;
    const Line f = features(p.tokens, p.cells);
    for (std::size_t i = 0; i < n; ++i) {
      const double left = f[i] / kScale[i] / p.us;
      for (std::size_t j = 0; j < n; ++j) sums[i][j] += left * f[j] / kScale[j] / p.us;
      sums[i][4] += left;
    }
  }
  if (n_points < n) return std::nullopt;
  auto line = solve(sums, n);
  if (!line) return std::nullopt;
  for (std::size_t i = 0; i < n; ++i) (*line)[i] /= kScale[i];
  return line;
}

bool is_few(const CostPoint& p) { return p.work == Work::step && p.tokens <= kFewMax; }
bool is_many(const CostPoint& p) { return p.work == Work::step && p.tokens > kFewMax; }
bool is_save(const CostPoint& p) { return p.work == Work::save; }
bool is_restore(const CostPoint& p) { return p.work == Work::restore; }

double value(const Line& line, int tokens, int cells) {
  const Line f = features(tokens, cells);
  double us = 0;
  for (std::size_t i = 0; i < f.size(); ++i) us += line[i] * f[i];
  return us;
}

}  // namespace

bench::Result<Costs> Costs::fit(std::span<const CostPoint> points) {
  const auto few = least_squares(points, 4, is_few), many = least_squares(points, 4, is_many);
  const auto save = least_squares(points, 2, is_save), restore = least_squares(points, 2, is_restore);
  if (!few || !many || !save || !restore) return std::unexpected("too few points to fit costs from");
  Costs costs;
  costs.few_ = *few, costs.many_ = *many, costs.save_ = *save, costs.restore_ = *restore;
  return costs;
}

const Costs::Line& Costs::line_of(Work work, int tokens) const {
  switch (work) {
    case Work::step: return tokens <= kFewMax ? few_ : many_;
    case Work::save: return save_;
    case Work::restore: return restore_;
  }
  return many_;
}

Duration Costs::at(const Line& line, int tokens, int cells) {
  return Duration(std::max<std::int64_t>(1, std::llround(value(line, tokens, cells))));
}

Duration Costs::step(int tokens, int cells) const { return at(line_of(Work::step, tokens), tokens, cells); }

double Costs::us(const CostPoint& p) const { return value(line_of(p.work, p.tokens), p.tokens, p.cells); }

bench::Result<HeldBack> held_back_error(std::span<const CostPoint> points) {
  HeldBack out;
  const auto measure = [&](FitError& error, bool (*kind)(const CostPoint&)) -> bench::Status {
    std::vector<CostPoint> fitted, held;
    int n = 0;
    for (const CostPoint& p : points) (kind(p) && n++ % 3 == 1 ? held : fitted).push_back(p);
    const auto costs = Costs::fit(fitted);
    if (!costs) return std::unexpected(costs.error());
    for (const CostPoint& p : held) {
      const double off = std::abs(costs->us(p) - p.us) / p.us;
      error.mean += off / static_cast<double>(held.size());
      error.worst = std::max(error.worst, off);
    }
    error.n = held.size();
    return {};
  };
  for (const auto& [error, kind] : {std::pair{&out.decoding, &is_few}, std::pair{&out.prompts, &is_many},
                                    std::pair{&out.saving, &is_save}, std::pair{&out.restoring, &is_restore}}) {
    if (auto ok = measure(*error, kind); !ok) return std::unexpected(ok.error());
  }
  return out;
}

}  // namespace coppice::simulate
