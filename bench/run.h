// Runs scenarios against servers, one after the other within each repeat (A B A B), and writes what was measured.
#pragma once

#include <string>
#include <vector>

#include "report/record.h"
#include "result.h"
#include "scenarios/scenario.h"

namespace coppice::bench {

struct NamedText {
  std::string name, text;
};

struct RunOptions {
  std::vector<std::string> scenarios;
  ScenarioOptions scenario;
  NamedText model{"demo", ""};   // its size in words, its file
  std::vector<NamedText> spawn;  // name and command of servers that are started for each episode
  std::vector<NamedText> peers;  // name and address of servers that run
  std::string floor;             // program; empty: no floor
  std::string out;               // JSON lines are appended; empty: nowhere
  std::string require;           // a server whose token counts must be the optimum's, or the run fails
  int repeats = 3, threads = 2;
  std::uint64_t seed = 1;
  RunFacts facts;
};

// NAME=REST; an error without one of them.
Result<NamedText> parse_named(const std::string& text);

// What was measured, the tables having been printed as they came. An error if nothing could be measured, or if
// `require` is not met.
Result<Results> run(const RunOptions& options);

}  // namespace coppice::bench
