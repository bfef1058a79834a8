// How far long work (loading, reading a cache) has come, for people: a bar on a terminal, a line every tenth elsewhere,
// nothing for what takes less than a second. One thread.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace coppice::app {

class Progress {
 public:
  // `out` and `clock` must outlive it.
  Progress(std::ostream& out, const Clock& clock, bool on_terminal, std::string_view what = "loading");

  void show(float share);  // 0.0 .. 1.0
  void finish();           // leaves the cursor on a fresh line; nothing is shown after it

 private:
  void show_bar(int percent);
  void show_line(int percent);

  std::ostream& out_;
  const Clock& clock_;
  const bool on_terminal_;
  const std::string what_;
  const TimePoint begin_;
  int shown_percent_ = -1;  // -1: nothing was shown yet
};

}  // namespace coppice::app
