#include "report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace coppice::bench {

Progress::Progress(int total) : total_(std::max(total, 1)), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (terminal_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::show(int done, std::string_view what) {
  if (!terminal_) return;
  constexpr int width = 24;
  const int filled = width * done / total_;
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_).count();
  fmt::print(stderr, "\r\x1b[K[{}{}] {}/{} {} s  {}", std::string(static_cast<std::size_t>(filled), '#'),
             std::string(static_cast<std::size_t>(width - filled), '.'), done, total_, seconds, what);
  std::fflush(stderr);
}

}  // namespace coppice::bench
