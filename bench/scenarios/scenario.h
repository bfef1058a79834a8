// What is measured: scenarios, their variants, and how one episode of a variant runs against one server.
//
// An episode begins with a server that knows nothing of its prompts: a fresh one, or one that has never seen this
// seed's tokens. Prompts depend on the seed alone, so that all servers get the same in one repeat, and others in the
// next.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peers/floor.h"
#include "peers/peer.h"
#include "result.h"

namespace coppice::bench {

enum class Unit : std::uint8_t { ms, tokens, tokens_per_s, cells };
std::string_view name(Unit unit);
std::optional<Unit> unit_of(std::string_view name);
// Whether more of it is better; of everything else, less is.
constexpr bool more_is_better(Unit unit) { return unit == Unit::tokens_per_s; }
// Exact counts do not depend on the machine.
constexpr bool is_exact(Unit unit) { return unit == Unit::tokens || unit == Unit::cells; }

struct Measure {
  std::string name;
  Unit unit = Unit::ms;
  double value = 0;
};
using Episode = std::vector<Measure>;

struct Variant {
  std::string label;
  std::optional<double> x;  // for a plot against a number
  ServerNeeds needs;
  int extra_tokens_max = 0;  // computed beyond the optimum where it counts: see RunOptions::require
  bool restarts = false;     // only for servers that this program started
  std::function<Result<Episode>(Peer&, std::uint64_t seed)> run;
  std::function<Result<Episode>(Floor&)> floor;  // measures of the same names; may be empty
};

struct Scenario {
  std::string name, question;
  std::string x_label;  // empty: variants are named, not numbered
  std::vector<Variant> variants;
};

// How much each scenario does.
enum class Scale : std::uint8_t {
  quick,  // seconds on the smallest model: does everything still work, are the counts right
  full,
  large,  // few tokens, for a model that takes seconds for a hundred of them
};

struct ScenarioOptions {
  Scale scale = Scale::full;
  std::string traces;               // folder of replay's traces
  std::optional<double> reading_s;  // user-turn: how long the user reads; the scale's if nothing is said
};

std::vector<std::string> scenario_names();
// An error for an unknown name, or when its data cannot be read.
Result<Scenario> make_scenario(std::string_view name, const ScenarioOptions& options);

}  // namespace coppice::bench
