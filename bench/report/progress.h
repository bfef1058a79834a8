// A progress bar on the terminal's error output, with the time that is left; silent where that is no terminal.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace coppice::bench {

// The time that is left when `done` of `total` took `elapsed_s`; nothing known (negative) before the first is done.
// No more than the budget has left, unless that is 0: none.
double seconds_left(int done, int total, double elapsed_s, double budget_s);

// "1:05"
std::string clock_text(double seconds);

class Progress {
 public:
  // `part` stands before the bar; `later_s` is what other runs will need after this one.
  Progress(int total, std::string part, double budget_s, double later_s);
  ~Progress();  // takes the bar away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Says what is being done now, `done` of all being behind it.
  void show(int done, std::string_view what);
  void clear();
  double elapsed_s() const;

 private:
  int total_;
  std::string part_;
  double budget_s_, later_s_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace coppice::bench
