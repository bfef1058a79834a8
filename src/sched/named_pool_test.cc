// Named pools (spec A12) through the whole scheduler.
#include <gtest/gtest.h>

#include "sched/test_world.h"

namespace coppice::sched {
namespace {

constexpr TokenPos kPoolLength = 300;
const NamespaceId kNobody{};

class NamedPool : public testing::Test {
 protected:
  NamedPool() : world({.n_cells = 1000, .n_seqs = 8, .n_batch = 64}, {.n_slots = 2}) {}

  std::shared_ptr<Outcome> make(const std::string& name, const Tokens& prompt, Duration ttl = Duration{0}) {
    Request request = world.make(prompt, {}, 0);
    request.make_pool = PoolSpec{name, ttl};
    auto outcome = world.submit(std::move(request));
    world.run();
    return outcome;
  }
  void fill_cells() { world.ask(tokens_of(99, 690), {}, 0); }

  Tokens base = tokens_of(1, kPoolLength);
  World world;
};

TEST_F(NamedPool, A12_IsNeverEvictedAndSharedByName) {
  make("base", base);
  fill_cells();
  fill_cells();
  const Report report = world.ask(base + tokens_of(2, 10), {.pool = "base"});
  EXPECT_EQ(report.source, kv::Source::pool);
  EXPECT_EQ(report.reused_pool, kPoolLength);
  EXPECT_EQ(report.computed, 10);
  EXPECT_EQ(report.reason, kv::MissReason::none);
  EXPECT_EQ(world.scheduler.pool(kNobody, "base")->uses, 1);
}

TEST_F(NamedPool, A12_IsFoundWithoutBeingNamed) {
  make("base", base);
  fill_cells();
  EXPECT_EQ(world.ask(base + tokens_of(2, 10)).reused_pool, kPoolLength);
}

TEST_F(NamedPool, A10_PromptThatDiffersSharesTheCommonPart) {
  make("base", base);
  Tokens prompt = base + tokens_of(2, 10);
  prompt[100] = 999;
  const Report report = world.ask(prompt, {.pool = "base"});
  EXPECT_EQ(report.reused_pool, 100);
  EXPECT_EQ(report.reason, kv::MissReason::diverged);
  EXPECT_EQ(report.diverged_at, 100);
}

TEST_F(NamedPool, A9_UnknownPoolIsNoErrorButSaysSo) {
  const Report report = world.ask(base, {.pool = "gone"});
  EXPECT_EQ(report.reason, kv::MissReason::not_resident);
  EXPECT_EQ(report.computed, kPoolLength);
}

TEST_F(NamedPool, A12_OneThatCannotFitIsRefusedBeforeAnythingIsComputed) {
  const auto refused = make("big", tokens_of(1, 751));
  ASSERT_TRUE(refused->error);
  EXPECT_EQ(refused->error->kind, ErrorKind::invalid_request);
  EXPECT_NE(refused->error->message.find("may hold 750 of 1000"), std::string::npos) << refused->error->message;
  EXPECT_EQ(world.runner.tokens_evaluated(), 0U);
  EXPECT_TRUE(make("fits", tokens_of(1, 750))->finished);
  EXPECT_TRUE(make("second", tokens_of(2, 1))->error);
}

TEST_F(NamedPool, A12_PoolsOverOneBaseCountItOnce) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(make(std::to_string(i), base + tokens_of(2 + i, 50))->finished) << i;
  EXPECT_EQ(world.scheduler.residency().pinned_cells(), kPoolLength + 5 * 50);
}

TEST_F(NamedPool, A12_TwoAtOnceCannotPassTheLimitTogether) {
  Request one = world.make(tokens_of(1, 500), {}, 0), two = world.make(tokens_of(2, 500), {}, 0);
  one.make_pool = PoolSpec{"one"};
  two.make_pool = PoolSpec{"two"};
  const auto first = world.submit(std::move(one)), second = world.submit(std::move(two));
  world.run();
  EXPECT_TRUE(first->finished);
  EXPECT_TRUE(second->error);
}

TEST_F(NamedPool, A12_NumberOfPoolsIsLimitedSoThatEverySlotHasASequence) {
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(make(std::to_string(i), tokens_of(2 + i, 5))->finished) << i;
  const auto refused = make("one more", tokens_of(50, 5));
  ASSERT_TRUE(refused->error);
  EXPECT_NE(refused->error->message.find("6 pools"), std::string::npos);
  EXPECT_TRUE(make("0", tokens_of(60, 5))->finished);  // the same name again takes no other place
  world.submit(tokens_of(70, 20), {}, 30);
  world.submit(tokens_of(71, 20), {}, 30);
  world.run();
}

TEST_F(NamedPool, A12_EndsWithItsTimeToLive) {
  make("base", base, std::chrono::seconds(10));
  EXPECT_EQ(world.scheduler.pool(kNobody, "base")->expires_in, std::chrono::seconds(10));
  world.clock.advance(std::chrono::seconds(10));
  EXPECT_EQ(world.scheduler.pool(kNobody, "base").error().kind, ErrorKind::not_found);
  EXPECT_EQ(world.scheduler.residency().pinned_cells(), 0);
  EXPECT_EQ(world.ask(base + tokens_of(2, 5)).reused(), kPoolLength);  // no longer pinned, but still held
}

TEST_F(NamedPool, A12_DeletedPoolLeavesTheCellsToThoseWhoShareThem) {
  make("base", base);
  const Tokens prompt = base + tokens_of(2, 10);
  world.ask(prompt, {.pool = "base"});
  EXPECT_EQ(world.scheduler.drop_pool(kNobody, "base").value(), 0);
  EXPECT_EQ(world.ask(world.next_turn(prompt, 4, tokens_of(3, 5))).computed, 6);
  EXPECT_EQ(world.scheduler.drop_pool(kNobody, "base").error().kind, ErrorKind::not_found);
}

TEST_F(NamedPool, B24_NamesAreOfTheirNamespace) {
  make("base", base);
  EXPECT_TRUE(world.scheduler.pools(NamespaceId{5}).empty());
  const Report report = world.ask(base, {.pool = "base", .ns = NamespaceId{5}});
  EXPECT_EQ(report.reason, kv::MissReason::not_resident);
  EXPECT_EQ(report.reused(), 0);
}

TEST_F(NamedPool, B18_PromptThatCannotFitBesideThePoolsIsRefused) {
  make("base", base);
  const auto refused = world.submit(tokens_of(2, 800));
  world.run();
  ASSERT_TRUE(refused->error);
  EXPECT_EQ(refused->error->kind, ErrorKind::context_overflow);
  EXPECT_NE(refused->error->message.find("pools, which hold 300 of 1000 cells"), std::string::npos);
  EXPECT_EQ(world.ask(base + tokens_of(2, 690), {}, 4).computed, 690);  // beside is what it does not share
}

TEST_F(NamedPool, CancelledWhileItIsComputedIsNoPool) {
  Request request = world.make(base, {}, 0);
  request.make_pool = PoolSpec{"base"};
  const auto outcome = world.submit(std::move(request));
  world.scheduler.step();
  world.scheduler.cancel(RequestId{1});
  EXPECT_TRUE(outcome->error);
  EXPECT_TRUE(world.scheduler.pools(kNobody).empty());
  EXPECT_EQ(world.ask(base).reused(), 64);
}

}  // namespace
}  // namespace coppice::sched
