// What the tests of the scheduler with tiers share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sched/test_world.h"
#include "tier/tiers_test_support.h"

namespace coppice::sched {

// A world whose cells hold one conversation, and tiers for many.
class TieredWorld {
 public:
  static constexpr TokenPos kBlock = 16;

  explicit TieredWorld(std::optional<tier::DiskOptions> disk = {}, std::uint64_t host_bytes_max = 1U << 20U,
                       TokenPos n_cells = 200, const std::string& fingerprint = "model")
      : TieredWorld({.n_cells = n_cells, .n_seqs = 8, .n_batch = 64}, {.n_slots = 2}, std::move(disk), host_bytes_max,
                    fingerprint) {}

  // Another model, another scheduler. `options.tier` is set here.
  TieredWorld(const engine::FakeRunnerOptions& runner, const SchedulerOptions& options,
              std::optional<tier::DiskOptions> disk = {}, std::uint64_t host_bytes_max = 1U << 20U,
              const std::string& fingerprint = "model")
      : tiers(*tier::Tiers::open(
            {.host_bytes_max = host_bytes_max, .disk = std::move(disk), .block_tokens = kBlock, .wake = {}}, clock,
            metrics)),
        world(runner, with_tiers(options, {.tiers = tiers.get(), .fingerprint = fingerprint})) {}

  // Until nothing is left to run or to save.
  void settle() {
    while (!world.scheduler.idle()) {
      world.scheduler.step();
      world.scheduler.check_invariants();
    }
    tiers->check_invariants();
    EXPECT_EQ(world.scheduler.sequences().cells().used(), world.runner.used());
  }
  Report ask(const Tokens& prompt, const Placement& placement = {}, int n_predict = 4) {
    const auto outcome = world.submit(prompt, placement, n_predict);
    settle();
    EXPECT_EQ(outcome->text, world.right_text(prompt, n_predict));
    return outcome->report();
  }
  tier::FlushResult flush() {
    tier::FlushResult result;
    bool done = false;
    world.scheduler.flush_tiers([&](tier::FlushResult r) { result = r, done = true; });
    settle();
    EXPECT_TRUE(done);
    return result;
  }

  ManualClock clock;
  obs::Metrics metrics;
  std::unique_ptr<tier::Tiers> tiers;
  World world;

 private:
  static SchedulerOptions with_tiers(SchedulerOptions options, TierOptions tier) {
    options.tier = std::move(tier);
    return options;
  }
};

inline constexpr TokenPos kBlock = TieredWorld::kBlock;

inline tier::DiskOptions disk_in(const std::string& dir) {
  tier::DiskOptions disk;
  disk.dir = dir;
  disk.bytes_max = 1U << 24U;
  disk.own_thread = false;
  return disk;
}

}  // namespace coppice::sched
