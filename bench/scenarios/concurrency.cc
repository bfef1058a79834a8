// concurrency: streams that decode side by side; unlike prompts, so that nothing but the work itself can be shared.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "scenarios/makers.h"
#include "scenarios/tally.h"

namespace coppice::bench {
namespace {

struct Concurrency {
  int streams = 1, answer = 48;
  std::size_t prompt = 128;
};

Result<Episode> run_concurrency(const Concurrency& p, Peer& peer, std::uint64_t seed) {
  std::vector<CompletionRequest> requests;
  for (int i = 0; i < p.streams; ++i) {
    Conversation c{fmt::format("stream-{}-{}", seed, i), {}, mix(seed, static_cast<std::uint64_t>(i))};
    requests.push_back(c.ask(peer.vocabulary(), p.prompt, p.answer));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto answers = complete_together(peer, requests);
  if (!answers) return std::unexpected(answers.error());
  const std::chrono::duration<double> makespan = std::chrono::steady_clock::now() - start;
  Tally tally;
  double gap_ms_max = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    tally.add(requests[i], (*answers)[i], peer.vocabulary());
    gap_ms_max = std::max(gap_ms_max, (*answers)[i].token_gap_ms_max);
  }
  Episode episode = tally.measures();
  episode.push_back({"tokens_per_s", Unit::tokens_per_s, static_cast<double>(tally.n_answer()) / makespan.count()});
  episode.push_back({"token_gap_ms_max", Unit::ms, gap_ms_max});
  return episode;
}

// Prompts one after the other, then all decode together.
Result<Episode> concurrency_floor(const Concurrency& p, Floor& floor) {
  const auto times =
      floor.measure({.prefix = 0, .fresh = static_cast<int>(p.prompt), .decode = p.answer, .streams = p.streams});
  if (!times) return std::unexpected(times.error());
  const double seconds = times->first_ms / 1000 + (p.answer - 1) * p.streams / times->tokens_per_s;
  return Episode{{"tokens_per_s", Unit::tokens_per_s, p.answer * p.streams / seconds}};
}

}  // namespace

Result<Scenario> make_concurrency(const ScenarioOptions& options) {
  Scenario scenario{"concurrency", "How many tokens a second do several streams get together?", "streams", {}};
  for (const int streams : by_scale<std::vector<int>>(options.scale, {1, 4}, {1, 2, 4, 8, 16}, {1, 2})) {
    Concurrency p{.streams = streams};
    p.answer = by_scale(options.scale, 8, 48, 8);
    p.prompt = by_scale<std::size_t>(options.scale, 64, 128, 32);
    Variant v;
    v.label = fmt::format("{} stream{}", streams, streams == 1 ? "" : "s");
    v.x = streams;
    v.needs = {.cells = (streams * (static_cast<int>(p.prompt) + p.answer + 32) + 512) / 256 * 256, .slots = streams};
    v.run = [p](Peer& peer, std::uint64_t seed) { return run_concurrency(p, peer, seed); };
    v.floor = [p](Floor& floor) { return concurrency_floor(p, floor); };
    scenario.variants.push_back(std::move(v));
  }
  return scenario;
}

}  // namespace coppice::bench
