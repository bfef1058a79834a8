// The index's own disk errors (spec B20): SQLite writes by itself, so that the faults of file_system.h do not reach it.
// Whatever fails, blocks stay in host memory, the log and a metric say so, and no wrong byte is served afterwards.
#include <gtest/gtest.h>
#include <prometheus/gauge.h>

#include <random>

#include "tier/disk_tier_for_test.h"
#include "tier/faulty_sqlite_for_test.h"

namespace coppice::tier {
namespace {

using SqlCall = FaultySqlite::Call;

struct IndexFaults : DiskTier {
  // Before the tiers that use it, and gone after them.
  ~IndexFaults() override { tiers.reset(); }
  void fail(SqlCall failing, int code) {
    sqlite.before = [=](SqlCall call, const char*) { return call == failing ? code : SQLITE_OK; };
  }
  void heal() { sqlite.before = nullptr; }
  FaultySqlite sqlite;
};

struct Fault {
  const char* name;
  SqlCall call;
  int code;
};

class IndexFault : public IndexFaults, public testing::WithParamInterface<Fault> {};

TEST_P(IndexFault, B20_BlocksStayInHostMemoryUntilItWorksAgain) {
  open();
  const Tokens first = numbers(1, 8), second = numbers(100, 8);
  put_all(chain_of(kModel, first, 4, kStateBytes));
  EXPECT_EQ(flush().blocks, 2U);
  fail(GetParam().call, GetParam().code);
  put_all(chain_of(kModel, second, 4, kStateBytes));
  tiers->put_record("session", "a", "x");
  const FlushResult failed = flush();
  EXPECT_EQ(failed.blocks, 0U);
  EXPECT_GE(failed.failed, 2U);
  EXPECT_TRUE(tiers->stats().disk_state.degraded);
  EXPECT_NE(tiers->stats().disk_state.reason.find("the cache index"), std::string::npos)
      << tiers->stats().disk_state.reason;
  EXPECT_EQ(metrics.tier_disk_degraded.Value(), 1.0);
  EXPECT_EQ(restore(kModel, first), 2U);
  EXPECT_EQ(restore(kModel, second), 2U);

  heal();
  clock.advance(std::chrono::seconds(31));
  EXPECT_EQ(flush().failed, 0U);
  EXPECT_FALSE(tiers->stats().disk_state.degraded);
  EXPECT_EQ(metrics.tier_disk_degraded.Value(), 0.0);
  restart();
  EXPECT_EQ(restore(kModel, first), 2U);
  EXPECT_EQ(restore(kModel, second), 2U);
  EXPECT_EQ(tiers->records("session").size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(All, IndexFault,
                         testing::Values(Fault{"Full", SqlCall::write, SQLITE_FULL},
                                         Fault{"ReadOnly", SqlCall::write, SQLITE_READONLY},
                                         Fault{"CannotWrite", SqlCall::write, SQLITE_IOERR_WRITE},
                                         Fault{"CannotSync", SqlCall::sync, SQLITE_IOERR_FSYNC}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(IndexFaults, OneThatCannotBeReadAtTheStartSaysSo) {
  open();
  tiers.reset();
  fail(SqlCall::read, SQLITE_IOERR_READ);
  EXPECT_NE(start_error().find(options.disk->dir), std::string::npos);
  heal();
  open();
}

// Calls fail at random, the server ends at random: what is found is right, and what a flush promised is found.
TEST_F(IndexFaults, C_RandomFaultsCostNoPromise) {
  std::mt19937 random(11);
  const auto pick = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  std::vector<Tokens> promised;
  for (int life = 0; life < 15; ++life) {
    heal();
    open();
    for (const Tokens& prompt : promised) ASSERT_EQ(restore(kModel, prompt), (prompt.size() + 3) / 4) << life;
    ASSERT_EQ(tiers->stats().quarantined, 0U);
    sqlite.before = [&](SqlCall call, const char*) {
      if (pick(12) != 0) return SQLITE_OK;
      return call == SqlCall::read ? SQLITE_IOERR_READ : pick(2) == 0 ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    };
    for (int i = 0; i < 6; ++i) {
      const Tokens prompt = numbers(1000 * life + 100 * i + 1, 4 + pick(20));
      put_all(chain_of(kModel, prompt, 4, kStateBytes));
      clock.advance(std::chrono::seconds(pick(40)));
      if (flush().failed == 0 && tiers->stats().disk_state.unwritten == 0) promised.push_back(prompt);
    }
    tiers.reset();
  }
  EXPECT_GT(promised.size(), 5U);
}

}  // namespace
}  // namespace coppice::tier
