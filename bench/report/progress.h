// A progress bar on the terminal's error output; silent where that is no terminal.
#pragma once

#include <chrono>
#include <string_view>

namespace coppice::bench {

class Progress {
 public:
  explicit Progress(int total);
  ~Progress();  // takes the bar away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Says what is being done now, `done` of all being behind it.
  void show(int done, std::string_view what);
  void clear();

 private:
  int total_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace coppice::bench
