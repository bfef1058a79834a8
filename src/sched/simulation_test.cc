// A seeded simulation: the real scheduler on a FakeRunner, with random arrivals, sessions, donors, forks, cancels,
// failing batches and far too few cells. After every step the invariants hold; every answer equals the one that the
// prompt alone gives. A failure prints its seed; COPPICE_SIM_SEED replays it and COPPICE_SIM_STEPS sets how long to
// run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "obs/log.h"
#include "sched/test_world.h"

namespace coppice::sched {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::strtoull(value, nullptr, 10);
}

class Simulation {
 public:
  Simulation(std::uint64_t seed, const engine::FakeRunnerOptions& runner, int n_slots)
      : random_(seed), world_(runner, {.n_slots = n_slots, .step_tokens_max = 1 + pick(24)}), n_slots_(n_slots) {}

  void run(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      if (world_.scheduler.queued() < 8 && pick(3) == 0) arrive();
      if (pick(40) == 0) cancel();
      if (pick(200) == 0) {
        world_.runner.fail_next_decode(pick(2) ? engine::DecodeStatus::failed : engine::DecodeStatus::no_cells);
      }
      step();
    }
    while (!world_.scheduler.idle()) step();
    settle();
    EXPECT_TRUE(open_.empty());
  }

  std::uint64_t answered() const { return answered_; }
  std::uint64_t pauses() const { return pauses_; }
  std::uint64_t reused() const { return reused_; }

 private:
  struct Open {
    RequestId id;
    Tokens prompt;
    int n_predict;
    std::shared_ptr<Outcome> outcome;
  };

  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  void step() {
    world_.clock.advance(std::chrono::milliseconds(1));
    world_.scheduler.step();
    world_.scheduler.check_invariants();
    ASSERT_EQ(world_.scheduler.sequences().cells().used(), world_.runner.used());
    settle();
  }

  // Prompts grow out of a few bases and out of each other, so that prefixes are shared in every possible way.
  Tokens make_prompt() {
    Tokens prompt = tokens_of(pick(3), 5 + pick(30));
    if (!known_.empty() && pick(2)) prompt = known_[static_cast<std::size_t>(pick(static_cast<int>(known_.size())))];
    if (pick(4) == 0) prompt.resize(1 + static_cast<std::size_t>(pick(static_cast<int>(prompt.size()))));
    if (pick(8) == 0) prompt[static_cast<std::size_t>(pick(static_cast<int>(prompt.size())))] = 1 + pick(900);
    const Tokens more = tokens_of(100 + pick(50), pick(12));
    return prompt + more;
  }

  void arrive() {
    Placement p;
    if (pick(2)) p.session = std::string(1, static_cast<char>('a' + pick(6)));
    if (pick(6) == 0) p.id_slot = SlotId{pick(n_slots_)};
    if (pick(4) == 0) p.shared_pool_slot = SlotId{pick(n_slots_)}, p.shared_prefix_n_tokens = pick(40);
    if (pick(10) == 0) p.cache_prompt = false;
    if (pick(10) == 0) p.ns = NamespaceId{1};
    const Tokens prompt = make_prompt();
    const int n_predict = pick(12) == 0 ? -1 : pick(25);
    const int copies = pick(10) == 0 ? 3 : 1;
    const RequestId first{world_.last_id + 1};
    for (int i = 0; i < copies; ++i) {
      if (i > 0) p.fork_of = first;
      Request request = world_.make(prompt, p, n_predict);
      if (!world_.scheduler.check(request)) return;
      const RequestId id = request.id;
      open_.push_back({id, prompt, n_predict, world_.submit(std::move(request))});
    }
  }

  void cancel() {
    if (open_.empty()) return;
    world_.scheduler.cancel(open_[static_cast<std::size_t>(pick(static_cast<int>(open_.size())))].id);
  }

  void settle() {
    std::erase_if(open_, [&](Open& o) {
      if (!o.outcome->ended()) return false;
      if (o.outcome->finished) check_answer(o);
      return true;
    });
  }

  void check_answer(const Open& o) {
    const auto room = world_.fake_options.n_cells - static_cast<TokenPos>(o.prompt.size());
    const int wanted = o.n_predict < 0 ? room : std::min(o.n_predict, room);
    const Tokens right = world_.right_tokens(o.prompt, wanted);
    ASSERT_EQ(o.outcome->text, world_.tokenizer.text(right, false)) << "request " << o.id.value;
    const Report& report = o.outcome->report();
    if (report.pauses == 0) {
      ASSERT_EQ(report.reused() + report.computed, report.prompt_tokens);
    }
    ++answered_;
    pauses_ += static_cast<std::uint64_t>(report.pauses);
    reused_ += static_cast<std::uint64_t>(report.reused());
    known_.push_back(o.prompt + right);
    if (known_.back().size() > 60) known_.pop_back();
    if (known_.size() > 30) known_.erase(known_.begin());
  }

  std::mt19937_64 random_;
  World world_;
  int n_slots_;
  std::vector<Open> open_;
  std::vector<Tokens> known_;
  std::uint64_t answered_ = 0, pauses_ = 0, reused_ = 0;
};

class SimulationSeeds : public testing::TestWithParam<engine::Rewind> {};

TEST_P(SimulationSeeds, C_EveryAnswerIsTheOneThatThePromptAloneGives) {
  spdlog::set_level(spdlog::level::off);
  const std::uint64_t seed = from_environment("COPPICE_SIM_SEED", std::random_device{}());
  const std::uint64_t steps = from_environment("COPPICE_SIM_STEPS", 60000);
  std::cout << "COPPICE_SIM_SEED=" << seed << " COPPICE_SIM_STEPS=" << steps << '\n';
  SCOPED_TRACE("COPPICE_SIM_SEED=" + std::to_string(seed));
  std::uint64_t answered = 0, pauses = 0, reused = 0;
  for (std::uint64_t part = 0; part < 6; ++part) {
    const int n_slots = 1 + static_cast<int>(part);
    Simulation simulation(seed + part,
                          {.n_cells = 80 + static_cast<TokenPos>(30 * part),
                           .n_seqs = n_slots,
                           .n_batch = 32,
                           .rewind = GetParam(),
                           .window = 8,
                           .eog_one_in = 20},
                          n_slots);
    simulation.run(steps / 6);
    answered += simulation.answered();
    pauses += simulation.pauses();
    reused += simulation.reused();
  }
  std::cout << "answered=" << answered << " pauses=" << pauses << " tokens_reused=" << reused << '\n';
  EXPECT_GT(answered, steps / 100);
  EXPECT_GT(pauses, 0U);  // else the simulation never got to the hard part
  EXPECT_GT(reused, 0U);
}

INSTANTIATE_TEST_SUITE_P(Memory, SimulationSeeds,
                         testing::Values(engine::Rewind::anywhere, engine::Rewind::window, engine::Rewind::never),
                         [](const auto& param) {
                           switch (param.param) {
                             case engine::Rewind::anywhere: return "anywhere";
                             case engine::Rewind::window: return "window";
                             default: return "never";
                           }
                         });

}  // namespace
}  // namespace coppice::sched
