// Spec A1-A6 end to end: which slot a request takes, and what it has to compute there.
#include <array>
#include <map>
#include <set>

#include "support.h"

namespace coppice::http_test {
namespace {

constexpr int kTurns = 5;

struct Agent {
  std::string name, code;
  Json history = Json::array();

  // Different from the first word of the system message on, which is within the first tenth of the prompt.
  Agent(std::string agent_name, std::string agent_code) : name(std::move(agent_name)), code(std::move(agent_code)) {
    history.push_back(
        system(name + " works here. The code of " + name + " is " + code + ".\nmax_depth: 64\nmax_width: 9"));
  }
  std::string question(int turn) const {
    if (turn % 2 == 1) return "What is max_depth set to?";
    return (turn == 0 ? "What is the code of " : "Tell me the code of ") + name + (turn == 0 ? "?" : ".");
  }
  std::string right_answer(int turn) const {
    if (turn % 2 == 1) return "max_depth: 64";
    return "The code of " + name + " is " + code + ".";
  }
};

class Affinity : public ServerTest {
 protected:
  Json chat(const Json& history, const std::string& session) const {
    return client().ask("/v1/chat/completions", {{"messages", history}, {"temperature", 0}, {"session_id", session}});
  }
};

TEST_F(Affinity, A1_A2_SessionsReturnToTheirSlotsAndComputeOnlyNewTokens) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "3"}));
  std::array<Agent, 3> agents{Agent{"Zorbin", "4821"}, Agent{"Velmin", "KX-7"}, Agent{"Tirgan", "9930"}};
  std::map<std::string, int> slots;
  std::map<std::string, TokenPos> held;
  double computed_total = 0, reused_total = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t i = 0; i < agents.size(); ++i) {
      // The order changes from turn to turn, so that "least recently used" would lead elsewhere.
      Agent& agent = agents[(i * 2 + static_cast<std::size_t>(turn)) % agents.size()];
      agent.history.push_back(user(agent.question(turn)));
      const TokenPos n_prompt = length(tokens_of(agent.history));
      const Json answer = chat(agent.history, agent.name);
      const Json& report = answer.at("coppice");
      SCOPED_TRACE(agent.name + " turn " + std::to_string(turn) + " " + report.dump());
      EXPECT_EQ(content(answer), agent.right_answer(turn));
      EXPECT_EQ(report["session"], agent.name);
      if (turn == 0) {
        slots[agent.name] = report["slot"];
        EXPECT_EQ(report["reason"], "new");
      } else {
        EXPECT_EQ(report["slot"], slots[agent.name]);
        EXPECT_EQ(report["reused"], held[agent.name]);
        EXPECT_EQ(report["source"], "slot");
        EXPECT_EQ(report["reason"], nullptr);
      }
      EXPECT_EQ(report["computed"], n_prompt - report["reused"].get<TokenPos>());
      EXPECT_EQ(answer["usage"]["prompt_tokens"], n_prompt);
      computed_total += report["computed"].get<double>();
      reused_total += report["reused"].get<double>();
      held[agent.name] = n_prompt + answer["usage"]["completion_tokens"].get<TokenPos>() - 1;
      agent.history.push_back(assistant(content(answer)));
    }
  }
  EXPECT_EQ((std::set{slots["Zorbin"], slots["Velmin"], slots["Tirgan"]}), (std::set{0, 1, 2}));
  EXPECT_EQ(metric("coppice_prompt_tokens_computed_total"), computed_total);
  EXPECT_EQ(metric("coppice_prompt_tokens_reused_total{source=\"slot\"}") +
                metric("coppice_prompt_tokens_reused_total{source=\"donor\"}"),
            reused_total);
}

TEST_F(Affinity, A1_TheSessionsSlotComesBeforeTheMostSimilarOne) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2"}));
  const Tokens a = random_tokens(1, 60), b = random_tokens(2, 60);
  const auto ask = [&](const Tokens& prompt, const std::string& session) {
    Json body = greedy(prompt, 2);
    if (!session.empty()) body["session_id"] = session;
    return client().ask("/completion", body).at("coppice");
  };
  EXPECT_EQ(ask(a, "A")["slot"], 1);
  EXPECT_EQ(ask(b, "B")["slot"], 0);
  // B's client starts over with a prompt that A's slot holds.
  const Json moved = ask(joined(a, random_tokens(3, 5)), "B");
  EXPECT_EQ(moved["slot"], 0);
  EXPECT_EQ(moved["source"], "donor") << "what it needs is in A's slot, and is shared";
  EXPECT_EQ(moved["reused"], 60);
  // Without a session the similar slot is the right one; both hold as much, and the first in order wins.
  EXPECT_EQ(ask(joined(a, random_tokens(4, 5)), "")["slot"], 0);
  EXPECT_EQ(ask(b, "")["slot"], 1) << "no slot holds b any more, and slot 1 is the least recently used";
}

TEST_F(Affinity, A2_ASlotServesOneSessionAndASessionHasOneSlot) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "--slot-prompt-similarity", "0"}));
  const auto ask = [&](std::uint64_t seed, const std::string& session, int slot = -1) {
    Json body = greedy(random_tokens(seed, 30), 1);
    body["session_id"] = session;
    body["id_slot"] = slot;
    return client().ask("/completion", body).at("coppice").at("slot").get<int>();
  };
  EXPECT_EQ(ask(1, "A"), 1);
  EXPECT_EQ(ask(2, "B"), 0);
  EXPECT_EQ(ask(3, "C"), 1) << "the least recently used";
  EXPECT_EQ(slot(1)["session"], "C");
  EXPECT_EQ(ask(1, "A"), 0) << "A's slot went to C, so A is as a stranger";
  EXPECT_EQ(slot(0)["session"], "A");
  EXPECT_EQ(ask(3, "C", 0), 0) << "the explicit slot comes before the session's";
  EXPECT_EQ(slot(0)["session"], "C");
  EXPECT_EQ(slot(1)["session"], nullptr) << "C moved";
}

// What llama-server v0.4.0 does, written down a second time.
class RuleModel {
 public:
  explicit RuleModel(std::size_t n_slots) : slots_(n_slots) {}

  int choose(const Tokens& prompt) const {
    int best = -1;
    float best_ratio = 0.1F;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].held.empty()) continue;
      const float ratio = static_cast<float>(common_prefix(slots_[i].held, prompt)) / static_cast<float>(prompt.size());
      if (ratio > best_ratio) {
        best = static_cast<int>(i);
        best_ratio = ratio;
      }
    }
    if (best >= 0) return best;
    best = 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].used <= slots_[static_cast<std::size_t>(best)].used) best = static_cast<int>(i);
    }
    return best;
  }
  void finished(int slot, Tokens held) {
    auto& s = slots_[static_cast<std::size_t>(slot)];
    s.held = std::move(held);
    s.used = ++uses_;
  }

 private:
  struct Slot {
    Tokens held;
    int used = -1;
  };
  std::vector<Slot> slots_;
  int uses_ = 0;
};

TEST_F(Affinity, A3_WithoutASessionSlotsAreThoseOfLlamaServer) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "3"}));
  RuleModel rule(3);
  // Three conversations of five turns, then prompts at and around the threshold of a tenth, equal candidates, and
  // prompts unlike everything.
  std::array<Tokens, 3> turns{random_tokens(1, 40), random_tokens(2, 40), random_tokens(3, 40)};
  std::vector<int> taken;
  std::vector<Tokens> everything;
  const auto check = [&](const Tokens& prompt) {
    const int expected = rule.choose(prompt);
    TokenPos reused = 0;  // from whatever was held before: it is all still there
    for (const Tokens& tokens : everything) reused = std::max(reused, common_prefix(tokens, prompt));
    reused = std::min(reused, length(prompt) - 1);
    const Json answer = client().ask("/completion", greedy(prompt, 3));
    const Json& report = answer.at("coppice");
    EXPECT_EQ(report["slot"], expected) << "request " << taken.size();
    EXPECT_EQ(report["reused"], reused) << "request " << taken.size();
    EXPECT_EQ(report["session"], nullptr);
    Tokens held = held_after(prompt, answer);
    everything.push_back(held);
    taken.push_back(report["slot"]);
    rule.finished(taken.back(), held);
    return held;
  };
  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t i = 0; i < turns.size(); ++i) {
      Tokens& conversation = turns[(i * 2 + static_cast<std::size_t>(turn)) % 3];
      conversation = joined(check(conversation), random_tokens(static_cast<std::uint64_t>(10 * turn) + i + 20, 8));
    }
  }
  EXPECT_EQ((std::vector(taken.begin(), taken.begin() + 3)), (std::vector{2, 1, 0})) << "an unused server fills up so";
  const Tokens base = random_tokens(50, 10);
  for (const std::size_t tail : {20U, 89U, 90U, 91U, 5U, 95U}) check(joined(base, random_tokens(60 + tail, tail)));
  for (const std::uint64_t seed : {70U, 71U, 72U, 70U, 71U}) check(random_tokens(seed, 25));
  const Tokens twin = random_tokens(80, 30);
  for (const int id : {0, 2}) {  // two slots that hold the same
    Json body = greedy(twin, 3);
    body["id_slot"] = id;
    everything.push_back(held_after(twin, client().ask("/completion", body)));
    rule.finished(id, everything.back());
  }
  check(joined(twin, random_tokens(81, 10)));
}

TEST_F(Affinity, A5_WithoutCachingEverythingIsComputedAndNothingKept) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2"}));
  const Tokens prompt = random_tokens(1, 50);
  Json body = greedy(prompt, 4);
  body["id_slot"] = 0;
  const Json kept = client().ask("/completion", body);
  body["cache_prompt"] = false;
  const Json fresh = client().ask("/completion", body);
  EXPECT_EQ(fresh["coppice"]["computed"], 50);
  EXPECT_EQ(fresh["coppice"]["reused"], 0);
  EXPECT_EQ(fresh["coppice"]["reason"], "disabled");
  EXPECT_EQ(fresh["tokens"], kept["tokens"]);
  EXPECT_EQ(slot(0)["n_held"], 0);
  EXPECT_EQ(metric("coppice_kv_cells_used"), length(held_after(prompt, kept))) << "the first answer's, parked";
}

TEST_F(Affinity, A6_AParallelRequestStartsFromTheBusySlotsPrefix) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "32768"}));
  Json first_turn = messages({system("Answer briefly.\n" + filler(3, 20)),
                              user("Remember: The code of Zorbin is 4821."), assistant("OK, noted.")});
  Json second_turn = first_turn;
  first_turn.push_back(user("Who are you?"));
  second_turn.push_back(user("What is the code of Zorbin?"));
  const Tokens running = tokens_of(first_turn), parallel = tokens_of(second_turn);
  const TokenPos shared = common_prefix(running, parallel);

  Stream stream = client().stream("/completion", {{"prompt", running},
                                                  {"n_predict", 100'000},
                                                  {"ignore_eos", true},
                                                  {"temperature", 0},
                                                  {"session_id", "S"},
                                                  {"id_slot", 1}});
  ASSERT_TRUE(stream.next_json().is_object());
  const double before = metric("coppice_prompt_tokens_computed_total");
  const Json answer = chat(second_turn, "S");
  const Json& report = answer["coppice"];
  EXPECT_EQ(content(answer), "The code of Zorbin is 4821.");
  EXPECT_EQ(report["slot"], 0);
  EXPECT_EQ(report["source"], "donor");
  EXPECT_EQ(report["reused"], shared);
  EXPECT_EQ(report["computed"], length(parallel) - shared);
  EXPECT_EQ(metric("coppice_prompt_tokens_computed_total"), before + length(parallel) - shared);
  EXPECT_EQ(slot(1)["is_processing"], true) << "it was not waited for";
  ASSERT_TRUE(stream.next_json().is_object());
}

}  // namespace
}  // namespace coppice::http_test
