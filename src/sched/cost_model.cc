#include "sched/cost_model.h"

#include <algorithm>

namespace coppice::sched {
namespace {

// Of shorter steps and blocks the time per token says more about the step than about the token.
constexpr TokenPos kTokensMin = 32;
constexpr double kFade = 0.98;  // of a point's weight, with each newer one

void average(double& mean, double value) { mean = mean == 0 ? value : mean + (value - mean) / 8; }

}  // namespace

void CostModel::Line::add(double x, double y) {
  for (double* sum : {&n_, &x_, &y_, &xx_, &xy_}) *sum *= kFade;
  n_ += 1, x_ += x, y_ += y, xx_ += x * x, xy_ += x * y;
}

double CostModel::Line::slope() const {
  if (n_ < 2) return 0;
  const double spread = xx_ / n_ - (x_ / n_) * (x_ / n_);  // variance
  if (spread < spread_min_ * spread_min_) return 0;
  return std::max(0.0, (xy_ / n_ - (x_ / n_) * (y_ / n_)) / spread);
}

double CostModel::Line::at(double x) const {
  return n_ > 0 ? std::max(mean_y() / 4, mean_y() + slope() * (x - x_ / n_)) : 0;  // never far beyond what was seen
}

void CostModel::note_prefill(TokenPos tokens, TokenPos cells, Duration took) {
  if (tokens >= kTokensMin) prefill_.add(cells, to_s(took) / tokens);
}

void CostModel::note_decode(TokenPos cells, Duration took) { decode_.add(cells, to_s(took)); }

void CostModel::note_answer(TokenPos tokens) { average(answer_tokens_, tokens); }

void CostModel::note_restored_cells(TokenPos tokens, Duration took) {
  if (tokens >= kTokensMin) average(restore_s_, to_s(took) / tokens);
}

void CostModel::note_saved(TokenPos tokens, Duration took) { average(save_s_, to_s(took) / tokens); }

void CostModel::note_restored_state(TokenPos tokens, Duration took) {
  average(state_s_, std::max(0.0, to_s(took) - restore_s_ * tokens));
}

double CostModel::computing_s(TokenPos tokens, TokenPos cells) const { return prefill_.at(cells) * tokens; }

bool CostModel::worth_restoring(TokenPos gain, TokenPos restored, TokenPos cells) const {
  const double computing = computing_s(gain, cells);
  return gain > 0 && (computing == 0 || restoring_s(restored) < computing);
}

void CostModel::note_rent(TokenPos prompt_tokens, bool decoding) {
  rent_s_ += prefill_.slope() * prompt_tokens + (decoding ? decode_.slope() : 0);
}

}  // namespace coppice::sched
