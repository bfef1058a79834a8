#include "sched/cost_model.h"

#include <gtest/gtest.h>

namespace coppice::sched {
namespace {

using std::chrono::microseconds;

TEST(CostModel, NothingIsAssumed) {
  CostModel costs;
  EXPECT_EQ(costs.computing_s(100, 1000), 0);
  EXPECT_TRUE(costs.worth_restoring(1, 1000, 0));
  EXPECT_FALSE(costs.worth_restoring(0, 0, 0));
  costs.note_rent(10000, true);
  EXPECT_EQ(costs.rent_s() + costs.rent_ahead_s(10000), 0);
}

TEST(CostModel, B19_TheTaxOfACellIsFoundFromStepsWithFewAndWithManyCells) {
  CostModel costs;
  for (TokenPos cells = 0; cells <= 20000; cells += 1000)
    costs.note_prefill(100, cells, microseconds(100 * (500 + cells / 20)));
  EXPECT_NEAR(costs.computing_s(1, 0), 500e-6, 1e-6);
  EXPECT_NEAR(costs.computing_s(10, 20000), 10 * 1500e-6, 1e-5);
  // 20,000 cells fewer save 0.001 s a token.
  EXPECT_NEAR(20000 * costs.rent_ahead_s(150), 0.15, 1e-3);
}

TEST(CostModel, B19_WithoutASpreadOfCellsThereIsNoTax) {
  CostModel costs;
  for (int i = 0; i < 100; ++i) costs.note_prefill(100, 1000 + i % 10, microseconds(1000 + 100 * (i % 10)));
  EXPECT_EQ(costs.rent_ahead_s(100000), 0);
}

TEST(CostModel, B19_DecodingPaysTheTaxForTheUsualAnswer) {
  CostModel costs;
  for (TokenPos cells = 0; cells <= 20000; cells += 1000) costs.note_decode(cells, microseconds(10000 + cells / 10));
  EXPECT_EQ(costs.rent_ahead_s(0), 0) << "no answers yet";
  costs.note_answer(200);  // with 20,000 cells fewer, 2 ms fewer for each of its tokens
  EXPECT_NEAR(20000 * costs.rent_ahead_s(0), 0.4, 1e-3);
}

TEST(CostModel, B19_RentAddsUpOverStepsOfBothKinds) {
  CostModel costs;
  for (TokenPos cells = 0; cells <= 20000; cells += 1000) {
    costs.note_prefill(100, cells, microseconds(100 * (500 + cells / 20)));  // 0.05 us a token and cell
    costs.note_decode(cells, microseconds(10000 + cells / 10));              // 0.1 us a step and cell
  }
  const double before = costs.rent_s();
  costs.note_rent(300, true);
  costs.note_rent(0, true);
  costs.note_rent(100, false);
  EXPECT_NEAR(costs.rent_s() - before, 400 * 0.05e-6 + 2 * 0.1e-6, 1e-9);
}

TEST(CostModel, B19_RestoringIsSkippedWhereComputingIsFaster) {
  CostModel costs;
  costs.note_prefill(1000, 0, microseconds(1000));     // 1 us a token
  costs.note_restored_cells(1000, microseconds(500));  // 0.5 us
  EXPECT_TRUE(costs.worth_restoring(1000, 1000, 0));
  EXPECT_FALSE(costs.worth_restoring(400, 1000, 0));
  costs.note_restored_state(1000, microseconds(500 + 900));  // and 0.9 ms for a state
  EXPECT_FALSE(costs.worth_restoring(1000, 1000, 0));
  EXPECT_TRUE(costs.worth_restoring(1000, 0, 0)) << "all cells are there";
}

}  // namespace
}  // namespace coppice::sched
