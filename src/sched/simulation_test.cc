// A seeded simulation: the real scheduler on a FakeRunner, with random arrivals, bursts, sessions, donors, pools,
// forks, cancels, failing batches, and far too few cells and sequences. After every step the invariants hold; every
// answer equals the one that the prompt alone gives. A failure prints its seed; COPPICE_SIM_SEED replays it and
// COPPICE_SIM_STEPS sets how long to run.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <random>
#include <tuple>

#include "obs/log.h"
#include "sched/test_world.h"

namespace coppice::sched {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::strtoull(value, nullptr, 10);
}

// About two minutes on one core for all kinds of memory together. Sanitizers are some thirty times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kStepsDefault = 200'000;
#else
constexpr std::uint64_t kStepsDefault = 4'000'000;
#endif

class Simulation {
 public:
  // `tier_bytes`: of host memory for blocks of four tokens; 0: no tiers.
  Simulation(std::uint64_t seed, const engine::FakeRunnerOptions& runner, int n_slots, std::uint64_t tier_bytes)
      : random_(seed),
        tiers_(tier_bytes == 0 ? nullptr
                               : *tier::Tiers::open({.host_bytes_max = tier_bytes, .disk = {}, .block_tokens = 4},
                                                    tier_clock_, tier_metrics_)),
        world_(runner, {.n_slots = n_slots,
                        .step_tokens_max = 1 + pick(24),
                        .coalesce_tokens_min = 1 + pick(6),
                        .checkpoint_tokens = 3 + pick(20),
                        .checkpoint_tokens_min = 1 + pick(4),
                        .spill_cells_min = 1 + pick(10),
                        .spill_spread_min = 2,
                        .pools_max = 2,
                        .tier = {.tiers = tiers_.get(), .fingerprint = "simulated"}}),
        n_slots_(n_slots) {
    // Time goes by as in a model whose tokens cost more the more cells are in use.
    world_.runner.on_decode = [this](std::span<const engine::BatchItem> batch) {
      const int each_us = 10 + world_.runner.used();
      world_.clock.advance(std::chrono::microseconds(static_cast<int>(batch.size()) * each_us));
    };
  }

  void run(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      if (world_.scheduler.queued() < 8 && pick(3) == 0) arrive();
      if (pick(10) == 0) prepare();
      if (pick(40) == 0) cancel();
      if (pick(60) == 0) inspect();
      if (pick(200) == 0) {
        world_.runner.fail_next_decode(pick(2) ? engine::DecodeStatus::failed : engine::DecodeStatus::no_cells);
      }
      if (pick(300) == 0) world_.runner.refuse_next_restore();
      step();
    }
    for (int i = 0; !world_.scheduler.idle(); ++i) {
      ASSERT_LT(i, 100'000) << "nothing moves on:" << stuck();
      step();
    }
    settle();
    EXPECT_TRUE(open_.empty());
    for (const auto& outcome : prepared_) ASSERT_TRUE(outcome->ended());
  }

  // What happened, to show that the simulation gets to the hard parts.
  struct Counts {
    std::uint64_t answered = 0, pauses = 0, reused = 0, coalesced = 0, from_pool = 0, pools = 0, pinned = 0,
                  pins_refused = 0, folded = 0, evicted = 0, restored = 0, quarantined = 0, states = 0, spilled = 0,
                  prepared_begun = 0, prepared = 0, prepared_used = 0, preempted = 0;
    void add(const Counts& c) {
      answered += c.answered, pauses += c.pauses, reused += c.reused, coalesced += c.coalesced;
      from_pool += c.from_pool, pools += c.pools, pinned += c.pinned, pins_refused += c.pins_refused;
      folded += c.folded, evicted += c.evicted;
      restored += c.restored, quarantined += c.quarantined, states += c.states;
      spilled += c.spilled, prepared += c.prepared, prepared_used += c.prepared_used, preempted += c.preempted;
      prepared_begun += c.prepared_begun;
    }
  };
  Counts counts() {
    counts_.folded = static_cast<std::uint64_t>(world_.metrics.cells_folded.Value());
    counts_.evicted = static_cast<std::uint64_t>(world_.metrics.sequences_evicted.Value());
    counts_.restored = world_.runner.tokens_restored();
    counts_.spilled = static_cast<std::uint64_t>(world_.metrics.sequences_spilled.Value());
    counts_.prepared = static_cast<std::uint64_t>(world_.metrics.background(obs::Prepared::computed).Value());
    counts_.prepared_used = static_cast<std::uint64_t>(world_.metrics.background(obs::Prepared::used).Value());
    counts_.preempted = static_cast<std::uint64_t>(world_.metrics.background_preempted.Value());
    counts_.states = world_.runner.states_restored();
    if (tiers_) counts_.quarantined = tiers_->stats().quarantined;
    return counts_;
  }

 private:
  struct Open {
    RequestId id;
    Tokens prompt;
    int n_predict;
    std::shared_ptr<Outcome> outcome;
  };

  std::string stuck() const {
    std::string text;
    for (const SlotInfo& slot : world_.scheduler.snapshot().slots) {
      if (!slot.request) continue;
      text += fmt::format(" slot {}: request {} held {} prompt {} processed {} predicted {};", slot.id.value,
                          slot.request->value, slot.held, slot.prompt_tokens, slot.processed, slot.predicted);
    }
    return text + fmt::format(" queued {}, cells {}", world_.scheduler.queued(), world_.runner.used());
  }

  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  void step() {
    world_.clock.advance(std::chrono::milliseconds(1));
    world_.scheduler.step();
    world_.scheduler.check_invariants();
    if (tiers_ && pick(20) == 0) tiers_->check_invariants();
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
    if (pick(6) == 0) p.pool = pool_name();
    Tokens prompt = make_prompt();
    if (pick(15) == 0) return make_pool(std::move(prompt), p.ns);
    if (pick(8) == 0) {  // a burst over one base
      const Tokens base = prompt;
      for (int i = 1 + pick(3); i > 0; --i) submit(base + tokens_of(200 + pick(90), pick(8)), {.ns = p.ns}, pick(9), 1);
    }
    submit(prompt, p, pick(12) == 0 ? -1 : pick(25), pick(10) == 0 ? 3 : 1);
  }

  void submit(const Tokens& prompt, Placement p, int n_predict, int copies) {
    for (int i = 0; i < copies; ++i) {
      p.is_fork = i > 0;
      if (pick(2)) p.history = pick(static_cast<int>(prompt.size()));
      if (pick(6) == 0) p.pins = pins_in(prompt);
      Request request = world_.make(prompt, p, n_predict);
      if (!world_.scheduler.check(request)) return;
      const RequestId id = request.id;
      open_.push_back({id, prompt, n_predict, world_.submit(std::move(request))});
    }
  }

  std::vector<PinWish> pins_in(const Tokens& prompt) {
    std::vector<PinWish> pins;
    for (TokenPos at = 0; pins.size() < 3;) {
      at += 1 + pick(20);
      if (at > static_cast<TokenPos>(prompt.size())) break;
      pins.push_back({at, std::chrono::milliseconds(1 + pick(300))});
    }
    return pins;
  }

  std::string pool_name() { return std::string(1, static_cast<char>('p' + pick(3))); }

  void make_pool(Tokens prompt, NamespaceId ns) {
    Request request = world_.make(prompt, {.ns = ns}, 0);
    request.make_pool = PoolSpec{pool_name(), pick(2) ? Duration{0} : std::chrono::milliseconds(1 + pick(300))};
    if (!world_.scheduler.check(request)) return;
    const RequestId id = request.id;
    open_.push_back({id, std::move(prompt), 0, world_.submit(std::move(request))});
  }

  // What people may do at any time between two steps.
  void inspect() {
    const NamespaceId ns{static_cast<std::uint64_t>(pick(2))};
    switch (pick(5)) {
      case 0: std::ignore = world_.scheduler.drop_pool(ns, pool_name()); break;
      case 1:
        std::ignore = world_.scheduler.forget_session(ns, std::string(1, static_cast<char>('a' + pick(6))));
        break;
      case 2: world_.scheduler.sessions(ns, 3); break;
      case 3: world_.scheduler.tree(ns, 1 + pick(4), 1 + pick(9)); break;
      default: {
        const Tokens prompt = make_prompt();
        const Explanation e = world_.scheduler.explain(prompt, {.ns = ns});
        ASSERT_EQ(e.reused + e.computed, static_cast<TokenPos>(prompt.size()));
      }
    }
  }

  // A prompt that may come, while nobody waits (spec B25).
  void prepare() {
    Placement p;
    if (pick(4)) p.session = std::string(1, static_cast<char>('a' + pick(6)));
    if (pick(5) == 0) p.ns = NamespaceId{1};
    Request request = world_.make(make_prompt(), p, 0);
    if (static_cast<TokenPos>(request.prompt->size()) >= world_.fake_options.n_cells) return;
    request.background = true;
    request.sampler = nullptr;
    const auto outcome = std::make_shared<Outcome>();
    request.sink = outcome;
    ++counts_.prepared_begun;
    prepared_.push_back(outcome);
    known_.push_back(*request.prompt);
    if (known_.size() > 30) known_.erase(known_.begin());
    world_.scheduler.submit(std::move(request));
  }

  void cancel() {
    if (open_.empty()) return;
    const RequestId id = open_[static_cast<std::size_t>(pick(static_cast<int>(open_.size())))].id;
    if (pick(2)) return world_.scheduler.cancel(id);
    world_.scheduler.conclude(id);
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
    Tokens right = world_.right_tokens(o.prompt, wanted);
    const Report& report = o.outcome->report();
    if (o.outcome->finished->stop == StopKind::enough) right.resize(static_cast<std::size_t>(report.predicted));
    if (report.predicted < static_cast<TokenPos>(right.size()) && world_.scheduler.residency().pinned_cells() > 0) {
      // Pools leave less room for an answer than the whole context.
      ASSERT_EQ(o.outcome->finished->stop, StopKind::length);
      right.resize(static_cast<std::size_t>(report.predicted));
    }
    ASSERT_EQ(o.outcome->text, world_.tokenizer.text(right, false)) << "request " << o.id.value;
    if (report.pauses == 0) {
      ASSERT_EQ(report.reused() + report.computed, report.prompt_tokens);
    }
    ++counts_.answered;
    counts_.pauses += static_cast<std::uint64_t>(report.pauses);
    counts_.reused += static_cast<std::uint64_t>(report.reused());
    counts_.coalesced += report.coalesced ? 1 : 0;
    counts_.from_pool += report.reused_pool > 0 ? 1 : 0;
    counts_.pinned += report.pinned > 0 ? 1 : 0;
    counts_.pins_refused += static_cast<std::uint64_t>(report.pins_refused);
    counts_.pools += world_.scheduler.residency().pools().size() > 0 ? 1 : 0;
    known_.push_back(o.prompt + right);
    if (known_.back().size() > 60) known_.pop_back();
    if (known_.size() > 30) known_.erase(known_.begin());
  }

  std::mt19937_64 random_;
  ManualClock tier_clock_;
  obs::Metrics tier_metrics_;
  std::unique_ptr<tier::Tiers> tiers_;
  World world_;
  int n_slots_;
  std::vector<Open> open_;
  std::vector<std::shared_ptr<Outcome>> prepared_;
  std::vector<Tokens> known_;
  Counts counts_;
};

class SimulationSeeds : public testing::TestWithParam<engine::Rewind> {};

TEST_P(SimulationSeeds, C_EveryAnswerIsTheOneThatThePromptAloneGives) {
  spdlog::set_level(spdlog::level::off);
  const std::uint64_t seed = from_environment("COPPICE_SIM_SEED", std::random_device{}());
  const std::uint64_t steps = from_environment("COPPICE_SIM_STEPS", kStepsDefault);
  std::cout << "COPPICE_SIM_SEED=" << seed << " COPPICE_SIM_STEPS=" << steps << '\n';
  SCOPED_TRACE("COPPICE_SIM_SEED=" + std::to_string(seed));
  Simulation::Counts counts;
  constexpr std::array kExtraSequences = {0, 1, 2, 5, 10, 30};
  constexpr std::array kTierBytes = {700, 1600, 0, 32000, 0, 6000};  // 8 for a token: as much as the cells, to 20 times
  for (std::uint64_t part = 0; part < 6; ++part) {
    const int n_slots = 1 + static_cast<int>(part);
    Simulation simulation(seed + part,
                          {.n_cells = 80 + static_cast<TokenPos>(30 * part),
                           .n_seqs = n_slots + kExtraSequences[part],
                           .n_batch = 32,
                           .rewind = GetParam(),
                           .window = 8,
                           .eog_one_in = 20},
                          n_slots, kTierBytes[part]);
    simulation.run(steps / 6);
    counts.add(simulation.counts());
  }
  std::cout << "answered=" << counts.answered << " pauses=" << counts.pauses << " tokens_reused=" << counts.reused
            << " coalesced=" << counts.coalesced << " from_pool=" << counts.from_pool << " pinned=" << counts.pinned
            << " pins_refused=" << counts.pins_refused << " folded=" << counts.folded << " evicted=" << counts.evicted
            << " restored=" << counts.restored << " states=" << counts.states << " spilled=" << counts.spilled
            << " quarantined=" << counts.quarantined << " prepared=" << counts.prepared
            << " prepared_used=" << counts.prepared_used << " preempted=" << counts.preempted << '\n';
  EXPECT_GT(counts.answered, steps / 100);
  // Else the simulation never got to the hard parts. Some are rare: a short run may miss them.
  if (steps < 1'000'000) return;
  EXPECT_GT(counts.pauses, 0U);
  EXPECT_GT(counts.reused, 0U);
  EXPECT_GT(counts.coalesced, 0U);
  EXPECT_GT(counts.from_pool, 0U);
  EXPECT_GT(counts.pinned, 0U);
  EXPECT_GT(counts.pins_refused, 0U);
  EXPECT_GT(counts.evicted, 0U);
  EXPECT_GT(counts.restored, 0U);
  EXPECT_GT(counts.spilled, 0U);
  EXPECT_GT(counts.quarantined, 0U);
  EXPECT_GT(counts.prepared, 0U);
  EXPECT_GT(counts.prepared_used, 0U);
  EXPECT_GT(counts.preempted, 0U);
  if (GetParam() == engine::Rewind::anywhere) {
    EXPECT_GT(counts.folded, 0U);
  } else {
    EXPECT_GT(counts.states, 0U);
  }
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
