// The floor: what llama.cpp itself needs for the same new tokens behind the same resident prefix, measured by the
// program coppice-floor in a process of its own. No server can be faster on the same library.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "peers/child.h"

namespace coppice::bench {

struct FloorPoint {
  int prefix = 0;   // tokens resident before
  int fresh = 1;    // new tokens of the prompt
  int decode = 1;   // tokens of the answer
  int streams = 1;  // that decode side by side
};

struct FloorTimes {
  double first_ms = 0;      // until the first token of the answer is known
  double tokens_per_s = 0;  // of the further ones, all streams together; 0 if there are none
};

class Floor {
 public:
  Floor(std::string program, std::string model, int threads, std::filesystem::path log)
      : program_(std::move(program)), model_(std::move(model)), threads_(threads), log_(std::move(log)) {}

  // A context of that size; keeps the one it has if it is the same.
  Status open(int cells, int sequences);
  void close() { child_.reset(); }
  // Medians of several measurements.
  Result<FloorTimes> measure(const FloorPoint& point);

 private:
  Result<FloorTimes> measure_once(const std::string& request);

  std::string program_, model_;
  int threads_;
  std::filesystem::path log_;
  std::optional<Child> child_;
  int cells_ = 0, sequences_ = 0;
};

}  // namespace coppice::bench
