// fanout: agents that start together over one long base, which nobody or somebody has computed before.
#include <fmt/format.h>

#include <chrono>

#include "scenarios/makers.h"
#include "scenarios/tally.h"

namespace coppice::bench {
namespace {

struct Fanout {
  int agents = 8, answer = 16;
  std::size_t base = 2048, own = 32;
  bool warm = false;
};

constexpr std::string_view kCellsMetric = "coppice_kv_cells_used";

Result<Episode> run_fanout(const Fanout& p, Peer& peer, std::uint64_t seed) {
  const Vocabulary& vocabulary = peer.vocabulary();
  Tally tally;
  const Tokens base = run_of(vocabulary, mix(seed, 1), p.base);
  if (p.warm) {
    Conversation parent{fmt::format("parent-{}", seed), base, mix(seed, 2)};
    if (const Status s = talk(peer, parent, 1, 1, tally, false); !s) return std::unexpected(s.error());
  }
  const std::optional<double> cells_before = peer.gauge(kCellsMetric);
  std::vector<CompletionRequest> requests;
  for (int a = 0; a < p.agents; ++a) {
    Conversation agent{fmt::format("agent-{}-{}", seed, a), base, mix(seed, 3, static_cast<std::uint64_t>(a))};
    requests.push_back(agent.ask(vocabulary, p.own, p.answer));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto answers = complete_together(peer, requests);
  if (!answers) return std::unexpected(answers.error());
  const std::chrono::duration<double, std::milli> makespan = std::chrono::steady_clock::now() - start;
  for (std::size_t i = 0; i < requests.size(); ++i) tally.add(requests[i], (*answers)[i], vocabulary);

  Episode episode = tally.measures();
  episode.push_back({"makespan_ms", Unit::ms, makespan.count()});
  if (const std::optional<double> cells = peer.gauge(kCellsMetric); cells && cells_before) {
    episode.push_back({"cells_added", Unit::cells, *cells - *cells_before});
  }
  return episode;
}

Result<Episode> fanout_floor(const Fanout& p, Floor& floor) {
  double ms = 0;
  if (!p.warm) {
    const auto base = floor.measure({.prefix = 0, .fresh = static_cast<int>(p.base), .decode = 1, .streams = 1});
    if (!base) return std::unexpected(base.error());
    ms += base->first_ms;
  }
  const auto times = floor.measure(
      {.prefix = static_cast<int>(p.base), .fresh = static_cast<int>(p.own), .decode = p.answer, .streams = p.agents});
  if (!times) return std::unexpected(times.error());
  ms += times->first_ms + (p.answer - 1) * p.agents * 1000.0 / times->tokens_per_s;
  return Episode{{"makespan_ms", Unit::ms, ms}};
}

}  // namespace

Result<Scenario> make_fanout(const ScenarioOptions& options) {
  Scenario scenario{
      "fanout", "What do agents over one long base compute, and how long until all have answered?", "", {}};
  for (const bool warm : {false, true}) {
    Fanout p{.warm = warm};
    p.agents = by_scale(options.scale, 4, 6, 3);
    p.base = by_scale<std::size_t>(options.scale, 512, 1024, 256);
    p.answer = by_scale(options.scale, 4, 16, 4);
    Variant v;
    v.label = fmt::format("{} agents, base of {}, {}", p.agents, p.base, warm ? "warm" : "cold");
    // Room for a copy of the base in each slot, so that no server is measured by what it does when cells run out.
    v.needs = {.cells = (p.agents + 1) * (static_cast<int>(p.base + p.own) + p.answer + 64), .slots = p.agents};
    v.needs.cells = (v.needs.cells + 255) / 256 * 256;
    v.run = [p](Peer& peer, std::uint64_t seed) { return run_fanout(p, peer, seed); };
    v.floor = [p](Floor& floor) { return fanout_floor(p, floor); };
    scenario.variants.push_back(std::move(v));
  }
  return scenario;
}

}  // namespace coppice::bench
