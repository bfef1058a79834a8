// Runs scenarios against servers, one after the other within each repeat (A B A B), and writes what was measured.
//
// All variants get their first repeat before any gets its second: when the time is up, repeats are missing rather than
// variants, and what was left out is a result of its own.
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
  std::string logs;              // folder to which the logs of servers are added when an episode failed; empty: none
  int repeats = 3, threads = 2;
  double budget_s = 0;  // nothing is begun that would end later than this; 0: no limit
  double later_s = 0;   // what the runs after this one need, for the time that is left
  std::string part;     // "2 of 5", for the progress bar
  std::uint64_t seed = 1;
  RunFacts facts;
};

// NAME=REST; an error without one of them.
Result<NamedText> parse_named(const std::string& text);

struct RunEnd {
  Results results;
  // The first episode of the floor or of `require` that failed or computed too much, or that a server did not outlive.
  // The others' errors are results: a server that refuses what does not fit.
  std::string failure;
};

// What was measured, its tables having been printed. An error if nothing could be measured: bad options, a server that
// should run but does not.
Result<RunEnd> run(const RunOptions& options);

}  // namespace coppice::bench
