#include "report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace coppice::bench {

double seconds_left(int done, int total, double elapsed_s, double budget_s) {
  const double of_budget = std::max(budget_s - elapsed_s, 0.0);
  if (done == 0) return budget_s > 0 ? of_budget : -1;
  const double at_this_pace = elapsed_s / done * (total - done);
  return budget_s > 0 ? std::min(at_this_pace, of_budget) : at_this_pace;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(std::ceil(seconds));
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

Progress::Progress(int total, std::string part, double budget_s, double later_s)
    : total_(std::max(total, 1)),
      part_(std::move(part)),
      budget_s_(budget_s),
      later_s_(later_s),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (terminal_) fmt::print(stderr, "\r\x1b[K");
}

double Progress::elapsed_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::show(int done, std::string_view what) {
  if (!terminal_) return;
  constexpr int width = 24;
  const int filled = width * done / total_;
  const double left_s = seconds_left(done, total_, elapsed_s(), budget_s_);
  const std::string left = left_s < 0 ? "" : clock_text(left_s + later_s_) + " left  ";
  fmt::print(stderr, "\r\x1b[K{}[{}{}] {}/{}  {}{}", part_.empty() ? "" : part_ + " ",
             std::string(static_cast<std::size_t>(filled), '#'),
             std::string(static_cast<std::size_t>(width - filled), '.'), done, total_, left, what);
  std::fflush(stderr);
}

}  // namespace coppice::bench
