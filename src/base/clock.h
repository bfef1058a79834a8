// Time as a dependency, so that tests and simulation own it.
#pragma once

#include <chrono>

namespace coppice {

using Duration = std::chrono::microseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;  // monotonic
};

class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); }
};

// A clock that moves only when told to. Not thread-safe.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

// One division, so that the result is the double nearest to the decimal number, and prints as that.
inline double to_s(Duration d) { return static_cast<double>(d.count()) / 1e6; }
inline double to_ms(Duration d) { return static_cast<double>(d.count()) / 1e3; }

}  // namespace coppice
