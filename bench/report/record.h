// Results as JSON lines, and read back from them: reports are made from any number of runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result.h"
#include "scenarios/scenario.h"

namespace coppice::bench {

// What is the same for all of a run.
struct RunFacts {
  std::string time, commit, command;
  std::string machine;  // processor, memory, system
  unsigned cores = 0;
};

struct Record {
  std::string scenario, question, x_label, variant, model, server;
  std::optional<double> x;
  int run = 0;  // which of the runs that were read together; not part of the line
  int repeat = 0;
  double load = 0;  // processes that wanted to run in the minute before, those of the benchmark among them
  Episode measures;
  std::string error;      // why there are none, if the episode failed
  bool left_out = false;  // the time was up before this repeat, for all servers
};

std::string to_line(const RunFacts& facts);
std::string to_line(const Record& record);

struct Results {
  std::vector<RunFacts> runs;
  std::vector<Record> records;
};

// Adds what the lines say; an error names the line that is none of ours.
Status read_lines(std::string_view text, Results& results);

}  // namespace coppice::bench
