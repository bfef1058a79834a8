// turn2: the next turn of several conversations that take turns, over as many slots or fewer.
#include <fmt/format.h>

#include "scenarios/makers.h"
#include "scenarios/tally.h"

namespace coppice::bench {
namespace {

struct Turn2 {
  int sessions = 4, slots = 4;
  bool shared_head = true;
  std::size_t head = 512, own = 64;  // tokens of the first prompt
  std::size_t fresh = 64;            // new tokens of each later turn
  int answer = 16, turns = 3;

  int length_max() const { return static_cast<int>(head + own) + turns * (static_cast<int>(fresh) + answer); }
};

Result<Episode> run_turn2(const Turn2& p, Peer& peer, std::uint64_t seed) {
  const Vocabulary& vocabulary = peer.vocabulary();
  std::vector<Conversation> all;
  for (int s = 0; s < p.sessions; ++s) {
    Conversation c{fmt::format("turn2-{}-{}", seed, s), {}, mix(seed, static_cast<std::uint64_t>(s))};
    append_run(c.tokens, vocabulary, mix(seed, p.shared_head ? 0 : static_cast<std::uint64_t>(s), 1), p.head);
    all.push_back(std::move(c));
  }
  Tally tally;
  for (Conversation& c : all) {
    if (const Status s = talk(peer, c, p.own, p.answer, tally, false); !s) return std::unexpected(s.error());
  }
  for (int turn = 1; turn < p.turns; ++turn) {
    for (Conversation& c : all) {
      if (const Status s = talk(peer, c, p.fresh, p.answer, tally); !s) return std::unexpected(s.error());
    }
  }
  Episode episode = tally.measures();
  episode.push_back({"decode_tokens_per_s", Unit::tokens_per_s, tally.decode_tokens_per_s()});
  return episode;
}

// The middle turn of one conversation. Its last answer's last token is new as well: it was never evaluated.
Result<Episode> turn2_floor(const Turn2& p, Floor& floor) {
  const int prefix = (static_cast<int>(p.head + p.own) + p.length_max()) / 2;
  return floor_episode(floor,
                       {.prefix = prefix, .fresh = static_cast<int>(p.fresh) + 1, .decode = p.answer, .streams = 1});
}

}  // namespace

Result<Scenario> make_turn2(const ScenarioOptions& options) {
  Scenario scenario{"turn2", "What does the next turn of a conversation cost while others take their turns?", "", {}};
  std::vector<Turn2> all = {{.sessions = 1, .slots = 1},
                            {.sessions = 4, .slots = 4},
                            {.sessions = 6, .slots = 2},
                            {.sessions = 6, .slots = 2, .shared_head = false}};
  if (options.scale == Scale::large) all = {{.sessions = 1, .slots = 1}, {.sessions = 3, .slots = 1}};
  for (Turn2& p : all) {
    if (options.scale == Scale::large) p.head = 256, p.own = 64, p.fresh = 32, p.answer = 8, p.turns = 3;
    if (options.scale == Scale::quick) p.head = 128, p.own = 64, p.fresh = 32, p.answer = 4, p.turns = 3;
    Variant v;
    v.label = fmt::format("{} session{}, {} slot{}{}", p.sessions, p.sessions == 1 ? "" : "s", p.slots,
                          p.slots == 1 ? "" : "s",
                          p.sessions == 1 ? ""
                          : p.shared_head ? ", one head"
                                          : ", own heads");
    v.needs = {.cells = (p.sessions * p.length_max() + 1024) / 256 * 256 + 256, .slots = p.slots};
    v.run = [p](Peer& peer, std::uint64_t seed) { return run_turn2(p, peer, seed); };
    v.floor = [p](Floor& floor) { return turn2_floor(p, floor); };
    scenario.variants.push_back(std::move(v));
  }
  return scenario;
}

}  // namespace coppice::bench
