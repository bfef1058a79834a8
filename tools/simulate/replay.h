// Runs a workload against a simulated server: agents think, ask, wait; sub-agents run side by side.
//
// Threading: none. Two runs with the same arguments give the same result to the last digit.
#pragma once

#include <functional>
#include <vector>

#include "base/clock.h"
#include "simulate/server.h"
#include "simulate/workload.h"

namespace coppice::simulate {

struct Outcome {
  std::int64_t requests = 0, prompt_tokens = 0, computed = 0, answered = 0;
  std::vector<double> first_ms;  // of each request, from when it was sent
  double makespan_s = 0;
  double working_s = 0;  // of that, the server had something to do
};

using MakeServer = std::function<std::unique_ptr<Server>(ManualClock&, Listener)>;

Outcome replay(const Workload& workload, const MakeServer& make_server);

}  // namespace coppice::simulate
