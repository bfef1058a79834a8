// overhead: a warm turn that has next to nothing to compute, behind more and more tokens: what is left is the server's.
#include <fmt/format.h>

#include "scenarios/makers.h"
#include "scenarios/tally.h"
#include "stats/summary.h"

namespace coppice::bench {
namespace {

struct Overhead {
  std::size_t prefix = 1000, fresh = 16;
  int turns = 5;
};

Result<Episode> run_overhead(const Overhead& p, Peer& peer, std::uint64_t seed) {
  Conversation c{fmt::format("overhead-{}", seed), {}, seed};
  Tally tally;
  if (const Status s = talk(peer, c, p.prefix, 1, tally, false); !s) return std::unexpected(s.error());
  std::vector<double> around_ms;
  for (int turn = 0; turn < p.turns; ++turn) {
    const CompletionRequest request = c.ask(peer.vocabulary(), p.fresh, 1);
    const Result<Completion> answer = peer.complete(request);
    if (!answer) return std::unexpected(answer.error());
    tally.add(request, *answer, peer.vocabulary());
    c.hear(peer.vocabulary(), 1);
    if (answer->prefill_ms) around_ms.push_back(answer->first_ms - *answer->prefill_ms);
  }
  Episode episode = tally.measures();
  if (!around_ms.empty()) episode.push_back({"outside_prefill_ms_p50", Unit::ms, percentile(around_ms, 0.5)});
  return episode;
}

Result<Episode> overhead_floor(const Overhead& p, Floor& floor) {
  return floor_episode(
      floor, {.prefix = static_cast<int>(p.prefix), .fresh = static_cast<int>(p.fresh) + 1, .decode = 1, .streams = 1});
}

Scenario scenario_of(std::string name, const std::vector<std::size_t>& lengths) {
  Scenario scenario{
      std::move(name), "What does the server add to a warm turn of 16 new tokens, by length?", "prompt tokens", {}};
  for (const std::size_t length : lengths) {
    const Overhead p{.prefix = length};
    Variant v;
    v.label = fmt::format("{} tokens", length);
    v.x = static_cast<double>(length);
    v.needs = {.cells = (static_cast<int>(length) + 1024) / 256 * 256, .slots = 1};
    v.run = [p](Peer& peer, std::uint64_t seed) { return run_overhead(p, peer, seed); };
    v.floor = [p](Floor& floor) { return overhead_floor(p, floor); };
    scenario.variants.push_back(std::move(v));
  }
  return scenario;
}

}  // namespace

Result<Scenario> make_overhead(const ScenarioOptions& options) {
  return scenario_of(
      "overhead", by_scale<std::vector<std::size_t>>(options.scale, {1000, 4000}, {1000, 4000, 16000, 32000}, {500}));
}

Result<Scenario> make_overhead_long(const ScenarioOptions& options) {
  return scenario_of("overhead-long", by_scale<std::vector<std::size_t>>(options.scale, {5000}, {100000}, {1000}));
}

}  // namespace coppice::bench
