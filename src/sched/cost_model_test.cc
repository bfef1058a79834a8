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
  EXPECT_FALSE(costs.worth_spilling(10000, 10000));
}

TEST(CostModel, B19_TheTaxOfACellIsFoundFromStepsWithFewAndWithManyCells) {
  CostModel costs;
  for (TokenPos cells = 0; cells <= 20000; cells += 1000)
    costs.note_prefill(100, cells, microseconds(100 * (500 + cells / 20)));
  EXPECT_NEAR(costs.computing_s(1, 0), 500e-6, 1e-6);
  EXPECT_NEAR(costs.computing_s(10, 20000), 10 * 1500e-6, 1e-5);
  // 20,000 cells fewer save 0.001 s a token.
  costs.note_restored_cells(1000, microseconds(5000));  // 0.1 s for all of them
  EXPECT_TRUE(costs.worth_spilling(20000, 150));
  EXPECT_FALSE(costs.worth_spilling(20000, 50));
}

TEST(CostModel, B19_WithoutASpreadOfCellsThereIsNoTax) {
  CostModel costs;
  for (int i = 0; i < 100; ++i) costs.note_prefill(100, 1000 + i % 10, microseconds(1000 + 100 * (i % 10)));
  EXPECT_FALSE(costs.worth_spilling(100000, 100000));
}

TEST(CostModel, B19_DecodingPaysTheTaxForTheUsualAnswer) {
  CostModel costs;
  for (TokenPos cells = 0; cells <= 20000; cells += 1000) costs.note_decode(cells, microseconds(10000 + cells / 10));
  costs.note_restored_cells(1000, microseconds(5000));
  EXPECT_FALSE(costs.worth_spilling(20000, 0)) << "no answers yet";
  costs.note_answer(200);  // 2 ms fewer for each of its tokens
  EXPECT_TRUE(costs.worth_spilling(20000, 0));
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
