// restart: the next turn of conversations whose server was stopped, or killed, and started again in between.
#include <fmt/format.h>

#include "scenarios/makers.h"
#include "scenarios/tally.h"

namespace coppice::bench {
namespace {

struct Restart {
  int conversations = 3, answer = 8;
  std::size_t length = 2048, fresh = 32;
  bool kill = false;
};

Result<Episode> run_restart(const Restart& p, Peer& peer, std::uint64_t seed) {
  Tally tally;
  auto all = begin_conversations(peer, "restart", p.conversations, p.length, p.answer, seed, tally);
  if (!all) return std::unexpected(all.error());
  // So that the kill comes between two writes and not at a moment of chance. Servers without it have nothing to write.
  if (p.kill) peer.post("/v1/cache/flush");
  if (const Status s = peer.restart(p.kill); !s) return std::unexpected(s.error());
  for (Conversation& c : *all) {
    if (const Status s = talk(peer, c, p.fresh, p.answer, tally); !s) return std::unexpected(s.error());
  }
  return tally.measures();
}

Result<Episode> restart_floor(const Restart& p, Floor& floor) {
  const int prefix = static_cast<int>(p.length) + p.answer - 1;
  return floor_episode(floor, {.prefix = prefix, .fresh = static_cast<int>(p.fresh) + 1, .decode = 1, .streams = 1});
}

}  // namespace

Result<Scenario> make_restart(const ScenarioOptions& options) {
  Scenario scenario{"restart", "What does the next turn cost after the server was started anew?", "", {}};
  for (const bool kill : {false, true}) {
    Restart p{.kill = kill};
    p.length = by_scale<std::size_t>(options.scale, 520, 1040, 300);
    p.conversations = by_scale(options.scale, 2, 3, 2);
    Variant v;
    v.label = fmt::format("{} conversations of {}, {}", p.conversations, p.length, kill ? "kill -9" : "stopped");
    v.needs = {.cells = (p.conversations * (static_cast<int>(p.length) + 256) + 255) / 256 * 256, .slots = 4};
    v.restarts = true;
    v.run = [p](Peer& peer, std::uint64_t seed) { return run_restart(p, peer, seed); };
    v.floor = [p](Floor& floor) { return restart_floor(p, floor); };
    scenario.variants.push_back(std::move(v));
  }
  return scenario;
}

}  // namespace coppice::bench
