#include "scenarios/scenario.h"

#include <algorithm>
#include <array>
#include <utility>

#include "scenarios/makers.h"

namespace coppice::bench {
namespace {

constexpr std::array<std::pair<Unit, std::string_view>, 4> kUnits{
    {{Unit::ms, "ms"}, {Unit::tokens, "tokens"}, {Unit::tokens_per_s, "tokens/s"}, {Unit::cells, "cells"}}};

struct Maker {
  std::string_view name;
  Result<Scenario> (*make)(const ScenarioOptions&);
};

constexpr std::array<Maker, 11> kMakers{{{"turn2", make_turn2},
                                         {"fanout", make_fanout},
                                         {"switch", make_switch},
                                         {"idle-tax", make_idle_tax},
                                         {"restart", make_restart},
                                         {"overhead", make_overhead},
                                         {"overhead-long", make_overhead_long},
                                         {"switch-long", make_switch_long},
                                         {"concurrency", make_concurrency},
                                         {"user-turn", make_user_turn},
                                         {"replay", make_replay}}};

}  // namespace

std::string_view name(Unit unit) {
  return std::ranges::find(kUnits, unit, &decltype(kUnits)::value_type::first)->second;
}

std::optional<Unit> unit_of(std::string_view name) {
  const auto it = std::ranges::find(kUnits, name, &decltype(kUnits)::value_type::second);
  return it == kUnits.end() ? std::nullopt : std::optional(it->first);
}

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const Maker& maker : kMakers) names.emplace_back(maker.name);
  return names;
}

Result<Scenario> make_scenario(std::string_view name, const ScenarioOptions& options) {
  const auto it = std::ranges::find(kMakers, name, &Maker::name);
  if (it == kMakers.end()) return std::unexpected("there is no scenario " + std::string(name));
  return it->make(options);
}

}  // namespace coppice::bench
