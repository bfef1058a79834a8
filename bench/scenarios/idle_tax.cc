// idle-tax: a new prompt and its answer, while other conversations that are not being served are held.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/makers.h"
#include "scenarios/tally.h"

namespace coppice::bench {
namespace {

struct IdleTax {
  std::size_t idle = 0, conversation = 2048;  // tokens held in all, and of each conversation
  std::size_t prompt = 256;
  int answer = 32, probes = 3;
};

Result<Episode> run_idle_tax(const IdleTax& p, Peer& peer, std::uint64_t seed) {
  Tally tally;
  for (std::size_t held = 0, i = 0; held < p.idle; held += p.conversation, ++i) {
    Conversation c{fmt::format("idle-{}-{}", seed, i), {}, mix(seed, 1, i)};
    if (const Status s = talk(peer, c, std::min(p.conversation, p.idle - held), 1, tally, false); !s) {
      return std::unexpected(s.error());
    }
  }
  for (int i = 0; i < p.probes; ++i) {
    Conversation c{fmt::format("probe-{}-{}", seed, i), {}, mix(seed, 2, static_cast<std::uint64_t>(i))};
    if (const Status s = talk(peer, c, p.prompt, p.answer, tally); !s) return std::unexpected(s.error());
  }
  Episode episode = tally.measures();
  episode.push_back({"decode_tokens_per_s", Unit::tokens_per_s, tally.decode_tokens_per_s()});
  return episode;
}

Result<Episode> idle_tax_floor(const IdleTax& p, Floor& floor) {
  return floor_episode(floor, {.prefix = 0, .fresh = static_cast<int>(p.prompt), .decode = p.answer, .streams = 1});
}

}  // namespace

Result<Scenario> make_idle_tax(const ScenarioOptions& options) {
  Scenario scenario{
      "idle-tax", "How much slower is a new conversation for those that are only held?", "idle tokens", {}};
  for (const int idle : by_scale<std::vector<int>>(options.scale, {0, 1024}, {0, 4096}, {0, 512})) {
    IdleTax p{.idle = static_cast<std::size_t>(idle)};
    if (options.scale == Scale::quick) p.conversation = 512, p.prompt = 64, p.answer = 8;
    if (options.scale == Scale::large) p.conversation = 256, p.prompt = 64, p.answer = 8, p.probes = 2;
    Variant v;
    v.label = fmt::format("{} idle tokens", idle);
    v.x = idle;
    v.needs = {.cells = (idle + p.probes * static_cast<int>(p.prompt + 64) + 1024) / 256 * 256, .slots = 4};
    v.run = [p](Peer& peer, std::uint64_t seed) { return run_idle_tax(p, peer, seed); };
    v.floor = [p](Floor& floor) { return idle_tax_floor(p, floor); };
    scenario.variants.push_back(std::move(v));
  }
  return scenario;
}

}  // namespace coppice::bench
