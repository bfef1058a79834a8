// The scenarios, one file each.
#pragma once

#include "scenarios/scenario.h"

namespace coppice::bench {

Result<Scenario> make_turn2(const ScenarioOptions& options);
Result<Scenario> make_fanout(const ScenarioOptions& options);
Result<Scenario> make_switch(const ScenarioOptions& options);
Result<Scenario> make_switch_long(const ScenarioOptions& options);
Result<Scenario> make_idle_tax(const ScenarioOptions& options);
Result<Scenario> make_restart(const ScenarioOptions& options);
Result<Scenario> make_overhead(const ScenarioOptions& options);
Result<Scenario> make_overhead_long(const ScenarioOptions& options);
Result<Scenario> make_concurrency(const ScenarioOptions& options);
Result<Scenario> make_user_turn(const ScenarioOptions& options);
Result<Scenario> make_replay(const ScenarioOptions& options);

// One of three values.
template <class T>
T by_scale(Scale scale, T quick, T full, T large) {
  return scale == Scale::quick ? quick : scale == Scale::full ? full : large;
}

}  // namespace coppice::bench
