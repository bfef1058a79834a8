// Prefixes that cache marks keep, through the whole scheduler.
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "sched/test_world.h"

namespace coppice::sched {
namespace {

constexpr Duration kMinute = std::chrono::minutes(1);

class Pins : public testing::Test {
 protected:
  explicit Pins(engine::FakeRunnerOptions runner = {.n_cells = 1000, .n_seqs = 8, .n_batch = 64})
      : world(runner, {.n_slots = 2}) {}

  Report ask(const Tokens& prompt, std::vector<PinWish> pins = {}) {
    Placement placement;
    placement.pins = std::move(pins);
    return world.ask(prompt, placement);
  }
  void fill_cells() {
    ask(tokens_of(98, 690));
    ask(tokens_of(99, 690));
  }
  std::size_t n_pins() const { return world.scheduler.residency().pins().size(); }
  TokenPos pinned_cells() const { return world.scheduler.residency().pinned_cells(); }

  Tokens base = tokens_of(1, 200);
  World world;
};

TEST_F(Pins, APinnedPrefixSurvivesWhatEvictsTheRest) {
  EXPECT_EQ(ask(base + tokens_of(2, 50), {{200, kMinute}}).pinned, 200);
  fill_cells();
  const Report report = ask(base + tokens_of(3, 50));
  EXPECT_EQ(report.reused(), 200);
  EXPECT_EQ(report.computed, 50);
  EXPECT_EQ(pinned_cells(), 200);
  EXPECT_EQ(world.metrics.prefix_pins.Value(), 1);
}

TEST_F(Pins, WithoutAPinItDoesNot) {
  ask(base + tokens_of(2, 50));
  fill_cells();
  EXPECT_EQ(ask(base + tokens_of(3, 50)).reused(), 0);
}

TEST_F(Pins, AfterItsTimeItIsEvictedLikeAnyOther) {
  ask(base, {{200, kMinute}});
  world.clock.advance(kMinute - Duration{1});
  EXPECT_EQ(*world.scheduler.next_deadline() - world.clock.now(), Duration{1});
  world.scheduler.step();
  EXPECT_EQ(n_pins(), 1U);
  world.clock.advance(Duration{1});
  world.scheduler.step();
  EXPECT_EQ(n_pins(), 0U);
  EXPECT_EQ(ask(base + tokens_of(3, 9)).reused(), 200) << "nothing is lost before it has to be";
  world.ask(tokens_of(97, 999), {}, 0);
  EXPECT_EQ(ask(base + tokens_of(4, 9)).reused(), 0);
}

TEST_F(Pins, TheSameMarkAgainRenewsIt) {
  ask(base + tokens_of(2, 50), {{200, kMinute}});
  world.clock.advance(kMinute / 2);
  EXPECT_EQ(ask(base + tokens_of(3, 50), {{200, kMinute}}).pinned, 200);
  EXPECT_EQ(n_pins(), 1U);
  world.clock.advance(kMinute / 2 + Duration{1});
  world.scheduler.step();
  EXPECT_EQ(n_pins(), 1U);
}

TEST_F(Pins, AMarkThatMovesOnTakesItsPinAlong) {
  Tokens prompt = base;
  for (int turn = 0; turn < 20; ++turn) {
    const auto length = static_cast<TokenPos>(prompt.size());
    EXPECT_EQ(ask(prompt, {{length, kMinute}}).pinned, length);
    prompt = world.next_turn(prompt, 4, tokens_of(10 + turn, 3));
  }
  EXPECT_EQ(n_pins(), 1U) << "one that keeps longer is there for the shorter ones too";
}

TEST_F(Pins, AShorterOneThatStaysLongerStays) {
  ask(base + tokens_of(2, 50), {{200, 2 * kMinute}, {250, kMinute}});
  EXPECT_EQ(n_pins(), 2U);
  EXPECT_EQ(pinned_cells(), 250);
  world.clock.advance(kMinute);
  world.scheduler.step();
  EXPECT_EQ(pinned_cells(), 200);
}

TEST_F(Pins, APoolThatKeepsThePrefixIsEnough) {
  Request request = world.make(base + tokens_of(2, 9), {}, 0);
  request.make_pool = PoolSpec{"base"};
  world.submit(std::move(request));
  world.run();
  EXPECT_EQ(ask(base, {{200, kMinute}}).pinned, 200);
  EXPECT_EQ(n_pins(), 0U);
}

TEST_F(Pins, BeyondThreeQuartersOfTheCellsTheyAreRefusedAndCounted) {
  EXPECT_EQ(ask(tokens_of(1, 700), {{700, kMinute}}).pinned, 700);
  const Report report = ask(tokens_of(2, 60), {{20, kMinute}, {60, kMinute}});
  EXPECT_EQ(report.pinned, 20);
  EXPECT_EQ(report.pins_refused, 1);
  EXPECT_EQ(world.metrics.prefix_pins_refused.Value(), 1);
}

TEST_F(Pins, TheirNumberIsLimitedSoThatEverySlotHasASequence) {
  for (int i = 0; i < 6; ++i) EXPECT_EQ(ask(tokens_of(2 + i, 9), {{9, kMinute}}).pinned, 9) << i;
  EXPECT_EQ(ask(tokens_of(20, 9), {{9, kMinute}}).pins_refused, 1);
  EXPECT_EQ(n_pins(), 6U);
}

TEST_F(Pins, APoolComesBeforeThem) {
  for (int i = 0; i < 6; ++i) ask(tokens_of(2 + i, 100), {{100, kMinute + Duration{i}}});
  Request request = world.make(tokens_of(50, 700), {}, 0);
  request.make_pool = PoolSpec{"base"};
  const auto pool = world.submit(std::move(request));
  world.run();
  EXPECT_TRUE(pool->finished);
  EXPECT_LE(pinned_cells(), 750);
  EXPECT_EQ(n_pins(), 0U);
}

TEST_F(Pins, TheyNeverKeepARequestFromRunningOrAnswering) {
  ask(tokens_of(1, 700), {{700, kMinute}});
  ask(tokens_of(2, 900));  // its prompt does not fit beside the pin
  EXPECT_EQ(n_pins(), 0U);
  ask(tokens_of(1, 700), {{700, kMinute}});
  world.ask(tokens_of(3, 100), {}, 850);  // its answer does not
  EXPECT_EQ(n_pins(), 0U);
}

TEST_F(Pins, ARequestWithoutATraceKeepsNothing) {
  Placement placement{.cache_prompt = false};
  placement.pins = {{200, kMinute}};
  EXPECT_EQ(world.ask(base, placement).pinned, 0);
  EXPECT_EQ(n_pins(), 0U);
}

TEST_F(Pins, TheyBelongToTheirNamespace) {
  ask(base, {{200, kMinute}});
  Placement placement{.ns = NamespaceId{1}};
  placement.pins = {{200, kMinute}};
  EXPECT_EQ(world.ask(base, placement).reused(), 0);
  EXPECT_EQ(n_pins(), 2U);
}

// A state that cannot go back is kept where the mark is, as prefill stops there; conversations that part there start
// from it.
class PinsOfAState : public Pins {
 protected:
  PinsOfAState() : Pins({.n_cells = 1000, .n_seqs = 5, .n_batch = 64, .rewind = engine::Rewind::never}) {}
};

TEST_F(PinsOfAState, AreTakenWhilePrefillPassesTheMark) {
  EXPECT_EQ(ask(base + tokens_of(2, 50), {{77, kMinute}, {200, kMinute}}).pinned, 200);
  EXPECT_EQ(n_pins(), 2U);
  EXPECT_EQ(ask(base + tokens_of(3, 50)).reused(), 200);
  EXPECT_EQ(ask(tokens_of(1, 77) + tokens_of(4, 50)).reused(), 77);
}

TEST_F(PinsOfAState, BehindTheMarkItIsTooLate) {
  ask(base);
  const Report report = ask(world.next_turn(base, 4, tokens_of(2, 9)), {{100, kMinute}});
  EXPECT_EQ(report.reused(), 203);
  EXPECT_EQ(report.pins_refused, 1);
}

TEST_F(PinsOfAState, WithoutAPlaceLeftTheConversationsOwnIsMoved) {
  Tokens prompt = base;
  for (int turn = 0; turn < 5; ++turn) {
    const auto length = static_cast<TokenPos>(prompt.size());
    EXPECT_EQ(ask(prompt, {{50, kMinute}, {length, kMinute}}).pinned, length) << turn;
    prompt = world.next_turn(prompt, 4, tokens_of(10 + turn, 3));
  }
  EXPECT_EQ(n_pins(), 3U);
  EXPECT_EQ(ask(tokens_of(1, 50) + tokens_of(4, 50)).reused(), 50) << "the shortest has stayed";
}

}  // namespace
}  // namespace coppice::sched
