// switch: conversations that take turns on one slot, with cells for all of them or for little more than one.
#include <fmt/format.h>

#include "scenarios/makers.h"
#include "scenarios/tally.h"

namespace coppice::bench {
namespace {

struct Switch {
  int conversations = 3, rounds = 2, answer = 8;
  std::size_t length = 1024, fresh = 32;
};

Result<Episode> run_switch(const Switch& p, Peer& peer, std::uint64_t seed) {
  Tally tally;
  auto all = begin_conversations(peer, "switch", p.conversations, p.length, p.answer, seed, tally);
  if (!all) return std::unexpected(all.error());
  for (int round = 0; round < p.rounds; ++round) {
    for (Conversation& c : *all) {
      if (const Status s = talk(peer, c, p.fresh, p.answer, tally); !s) return std::unexpected(s.error());
    }
  }
  return tally.measures();
}

Result<Episode> switch_floor(const Switch& p, Floor& floor) {
  const int prefix = static_cast<int>(p.length + p.fresh / 2) + p.answer;
  return floor_episode(floor, {.prefix = prefix, .fresh = static_cast<int>(p.fresh) + 1, .decode = 1, .streams = 1});
}

Scenario switch_between(std::string name, int conversations, std::size_t length) {
  Scenario scenario{
      std::move(name), "What does it cost to come back to a conversation after others had the slot?", "", {}};
  const Switch p{.conversations = conversations, .length = length};
  const int one = static_cast<int>(p.length) + p.rounds * (static_cast<int>(p.fresh) + p.answer) + 256;
  for (const bool roomy : {true, false}) {
    Variant v;
    v.label = fmt::format("{} conversations of {}, cells for {}", p.conversations, p.length, roomy ? "all" : "one");
    v.needs = {.cells = ((roomy ? p.conversations * one : one) + 255) / 256 * 256, .slots = 1};
    v.run = [p](Peer& peer, std::uint64_t seed) { return run_switch(p, peer, seed); };
    v.floor = [p](Floor& floor) { return switch_floor(p, floor); };
    scenario.variants.push_back(std::move(v));
  }
  return scenario;
}

}  // namespace

Result<Scenario> make_switch(const ScenarioOptions& options) {
  return switch_between("switch", 3, by_scale<std::size_t>(options.scale, 512, 1024, 192));
}

Result<Scenario> make_switch_long(const ScenarioOptions& options) {
  return switch_between("switch-long", 2, by_scale<std::size_t>(options.scale, 1024, 8000, 512));
}

}  // namespace coppice::bench
