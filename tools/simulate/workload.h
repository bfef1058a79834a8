// Many agent sessions out of a few recorded ones: which prompts come, when, and what they have in common.
//
// Sessions are drawn from the traces in turn, so any number of them is as mixed as the traces are; drawn again, a trace
// gets other tokens, but for the head of its tool list, which all sessions with that list share. Everything follows
// from the seed.
//
// The traces say which blocks of prompts are equal, not where an answer went. Where the next prompt goes on from this
// one it is taken to go on with this one's answer, as agents' prompts do; where it does not, the answer is forgotten.
//
// Threading: none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "scenarios/trace.h"

namespace coppice::simulate {

struct WorkloadOptions {
  int sessions = 8;
  int tokens_per_block = 2;     // a block of the traces has 64
  int requests_max = 1 << 30;   // of each agent
  double think_s_max = 600;     // longer pauses are cut to this: nights
  double start_window_s = 600;  // sessions begin in the course of it
  std::uint64_t seed = 1;
};

struct Turn {
  Tokens prompt, answer;
};

class Workload {
 public:
  // `traces` must not be empty.
  Workload(std::vector<bench::Trace> traces, const WorkloadOptions& options);

  int sessions() const { return options_.sessions; }
  const bench::TraceAgent& agent(int session) const { return trace(session).main; }
  Duration start(int session) const;
  Duration think(const bench::TraceRequest& request) const;

  // Request `step` of the agent, which must be one.
  Turn turn(int session, const bench::TraceAgent& agent, std::size_t step) const;
  std::size_t steps(const bench::TraceAgent& agent) const;

  // What an infinite cache would compute, and hold in the end.
  struct Best {
    std::int64_t requests = 0, prompt_tokens = 0, computed = 0, held = 0;
    int longest = 0;  // prompt and answer
  };
  Best best() const;

 private:
  const bench::Trace& trace(int session) const { return traces_[static_cast<std::size_t>(session) % traces_.size()]; }
  void append_blocks(Tokens& tokens, int session, const bench::TraceAgent& agent, const bench::TraceRequest& request,
                     std::size_t first, std::size_t end) const;

  std::vector<bench::Trace> traces_;
  WorkloadOptions options_;
};

// The traces of a folder, in order of their names.
bench::Result<std::vector<bench::Trace>> read_traces(const std::filesystem::path& folder);

// Conversations of equal length, one turn of each after the other, without end in sight: what a cache that keeps the
// most recently used does worst at. Each begins with so many blocks, and grows by two a turn.
bench::Trace rotation_trace(int turns, int blocks_first);

}  // namespace coppice::simulate
