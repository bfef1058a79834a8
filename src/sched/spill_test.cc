// Idle cells that slow others down are left to host memory, when that pays (spec B19).
#include <gtest/gtest.h>

#include "sched/tiered_world.h"

namespace coppice::sched {
namespace {

// A model whose tokens take 1 ms each, and `tax_us` more for each cell in use. Restoring takes no time on this clock.
class TaxedWorld : public TieredWorld {
 public:
  explicit TaxedWorld(int tax_us, std::uint64_t host_bytes_max = 1U << 20U)
      : TieredWorld({.n_cells = 4000, .n_seqs = 8, .n_batch = 64},
                    {.n_slots = 2, .spill_cells_min = 64, .spill_spread_min = 50}, {}, host_bytes_max) {
    world.runner.on_decode = [this, tax_us](std::span<const engine::BatchItem> batch) {
      const int each_us = 1000 + tax_us * world.runner.used();
      world.clock.advance(std::chrono::microseconds(static_cast<int>(batch.size()) * each_us));
    };
  }
  Report ask(const Tokens& prompt, const std::string& session) {
    return TieredWorld::ask(prompt, {.session = session});
  }
};

const Tokens kOne = tokens_of(1, 900), kTwo = tokens_of(2, 900), kThree = tokens_of(3, 900);

TEST(Spill, B19_CellsThatSlowOthersDownAreLeftToHostMemoryAndComeBack) {
  TaxedWorld t(10);
  t.ask(kOne, "one");
  t.ask(kTwo, "two");
  t.ask(kThree, "three");
  EXPECT_LT(t.world.runner.used(), 1000) << "the last one's cells alone are left";
  EXPECT_GT(t.world.metrics.sequences_spilled.Value(), 0);
  const Report back = t.ask(kOne + tokens_of(4, 10), "one");
  EXPECT_EQ(back.computed, 10);
  EXPECT_EQ(back.reused_host, 900);
  EXPECT_EQ(back.reason, kv::MissReason::none);
}

TEST(Spill, B19_WithoutATaxAllStays) {
  TaxedWorld t(0);
  t.ask(kOne, "one");
  t.ask(kTwo, "two");
  t.ask(kThree, "three");
  EXPECT_GE(t.world.runner.used(), 2700);
}

TEST(Spill, B19_WhatHostMemoryHasNoRoomForStays) {
  TaxedWorld t(10, 2000);  // bytes: a few blocks
  t.ask(kOne, "one");
  t.ask(kTwo, "two");
  t.ask(kThree, "three");
  EXPECT_GE(t.world.runner.used(), 2700);
  EXPECT_EQ(t.ask(kOne + tokens_of(4, 10), "one").computed, 10);
}

}  // namespace
}  // namespace coppice::sched
