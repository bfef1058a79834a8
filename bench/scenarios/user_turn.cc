// user-turn: the user's next message after an agent's tool calls, an answer, and the time that reading it takes. The
// template leaves the thoughts of the tool calls out once the user speaks again, so that the prompt parts from what is
// held before all of them.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "scenarios/agent_chat.h"
#include "scenarios/makers.h"
#include "scenarios/tally.h"

namespace coppice::bench {
namespace {

// What any server has to compute beside the message's own text (spec B25): what ends a message and begins an answer,
// and what is so little that it is not prepared.
constexpr int kAllowed = 80;

constexpr int kHeadTokens = 700;  // of the system's message without its text: tools, how to call them

struct UserTurn {
  int tools = 3, rounds = 2;
  ChatLengths lengths;
  double reading_s = 0;
  bool until_idle = false;

  int length_max() const {
    const int call = static_cast<int>(lengths.thought * 2 + lengths.result) + 200;
    const int last = static_cast<int>(lengths.thought * 2 + lengths.answer * 2 + lengths.message) + 50;
    return kHeadTokens + static_cast<int>(lengths.system) + (rounds + 1) * (tools * call + last);
  }
};

// What the last message looked like, for the floor, which is measured after the servers.
struct Seen {
  int prompt = 0, fresh = 0;
};

// Where counts are checked, a busy machine must not change them: so it takes as long as the server is at work, if the
// server says so.
void read_answer(const UserTurn& p, const Peer& peer) {
  constexpr std::chrono::seconds at_most{60};
  constexpr std::chrono::milliseconds look_again{20};
  std::this_thread::sleep_for(std::chrono::duration<double>(p.reading_s));
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  const auto at_work = [&] {
    return peer.gauge("coppice_next_turns_queued").value_or(0) > 0 ||
           peer.gauge("coppice_background_queued").value_or(0) > 0;
  };
  while (p.until_idle && at_work() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(look_again);
  }
}

Status tool_loop(AgentChat& chat, int calls) {
  for (int i = 0; i < calls; ++i) {
    if (const auto called = chat.call_tool(); !called) return std::unexpected(called.error());
  }
  const auto answered = chat.answer();
  return answered ? Status{} : std::unexpected(answered.error());
}

Result<Episode> run_user_turn(const UserTurn& p, const Peer& peer, std::uint64_t seed, Seen& seen) {
  auto chat = AgentChat::begin(peer, p.lengths, seed);
  if (!chat) return std::unexpected(chat.error());
  if (const auto said = chat->say(); !said) return std::unexpected(said.error());
  if (const Status s = tool_loop(*chat, p.tools); !s) return std::unexpected(s.error());
  Tally tally;
  std::int64_t prompts = 0;
  bool all_counted = true;
  for (int round = 0; round < p.rounds; ++round) {
    read_answer(p, peer);
    const auto said = chat->say();
    if (!said) return std::unexpected(said.error());
    const auto answer = chat->call_tool();  // measured: the first thing that the server does about it
    if (!answer) return std::unexpected(answer.error());
    tally.add(*answer, static_cast<std::int64_t>(*said));
    all_counted = all_counted && answer->n_prompt;
    prompts += answer->n_prompt.value_or(0);
    seen = {static_cast<int>(answer->n_prompt.value_or(p.length_max())), static_cast<int>(*said)};
    if (round + 1 == p.rounds) break;
    if (const Status s = tool_loop(*chat, p.tools - 1); !s) return std::unexpected(s.error());
  }
  Episode episode = tally.measures();
  if (all_counted) episode.push_back({"tokens_of_prompts", Unit::tokens, static_cast<double>(prompts)});
  return episode;
}

Result<Episode> user_turn_floor(Floor& floor, const Seen& seen) {
  if (seen.fresh == 0) return std::unexpected("no server has shown how long the prompts are");
  return floor_episode(floor, {.prefix = seen.prompt - seen.fresh, .fresh = seen.fresh, .decode = 1, .streams = 1});
}

}  // namespace

Result<Scenario> make_user_turn(const ScenarioOptions& options) {
  Scenario scenario{
      "user-turn", "What does the user's next message cost, after tool calls, an answer and time to read it?", "", {}};
  UserTurn p;
  p.reading_s = options.reading_s.value_or(by_scale(options.scale, 0.5, 5.0, 30.0));
  if (options.scale == Scale::quick) {
    p.rounds = 1, p.until_idle = true;
    p.lengths = {.system = 32, .thought = 32, .result = 64, .answer = 16, .message = 40};
  } else if (options.scale == Scale::large) {
    p.rounds = 1;
    p.lengths = {.system = 32, .thought = 32, .result = 64, .answer = 16, .message = 40};
  }
  Variant v;
  v.label = fmt::format("{} tool calls, {} s of reading", p.tools, p.reading_s);
  // What is prepared stands beside what it parts from.
  v.needs = {.cells = (2 * p.length_max() + 255) / 256 * 256, .slots = 1};
  v.extra_tokens_max = kAllowed * p.rounds;
  const auto seen = std::make_shared<Seen>();
  v.run = [p, seen](Peer& peer, std::uint64_t seed) { return run_user_turn(p, peer, seed, *seen); };
  v.floor = [seen](Floor& floor) { return user_turn_floor(floor, *seen); };
  scenario.variants.push_back(std::move(v));
  return scenario;
}

}  // namespace coppice::bench
