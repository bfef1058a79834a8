#include "app/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>

namespace coppice::app {
namespace {

constexpr Duration kQuiet = std::chrono::seconds(1);
constexpr int kBarWidth = 40;

}  // namespace

Progress::Progress(std::ostream& out, const Clock& clock, bool on_terminal, std::string_view what)
    : out_(out), clock_(clock), on_terminal_(on_terminal), what_(what), begin_(clock.now()) {}

void Progress::show(float share) {
  if (clock_.now() - begin_ < kQuiet) return;
  const int percent = std::clamp(static_cast<int>(share * 100), 0, 100);
  if (percent <= shown_percent_) return;
  on_terminal_ ? show_bar(percent) : show_line(percent);
}

void Progress::show_bar(int percent) {
  const int done = percent * kBarWidth / 100;
  out_ << fmt::format("\r{} [{}{}] {:3}%", what_, std::string(static_cast<std::size_t>(done), '#'),
                      std::string(static_cast<std::size_t>(kBarWidth - done), ' '), percent)
       << std::flush;
  shown_percent_ = percent;
}

void Progress::show_line(int percent) {
  if (shown_percent_ >= 0 && percent / 10 == shown_percent_ / 10) return;
  out_ << fmt::format("{} {}%\n", what_, percent / 10 * 10) << std::flush;
  shown_percent_ = percent;
}

void Progress::finish() {
  if (on_terminal_ && shown_percent_ >= 0)
    out_ << "\r" << std::string(kBarWidth + what_.size() + 9, ' ') << "\r" << std::flush;
  shown_percent_ = 100;
}

}  // namespace coppice::app
