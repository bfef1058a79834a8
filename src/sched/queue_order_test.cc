// Who of those that wait goes first, and who may not be overtaken any more.
#include "sched/queue_order.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace coppice::sched {
namespace {

using Order = std::vector<std::size_t>;

TEST(QueueOrder, TheFewestTokensToComputeGoFirstAndOfEqualOnesTheOlder) {
  const std::vector<Waiting> queue{{.to_compute = 500}, {.to_compute = 20}, {.to_compute = 90}, {.to_compute = 20}};
  EXPECT_EQ(queue_order(queue, 8), (Order{1, 3, 2, 0}));
}

TEST(QueueOrder, WhoWasOvertakenOftenEnoughGoesFirst) {
  const std::vector<Waiting> queue{{.to_compute = 500, .overtaken = 7},
                                   {.to_compute = 900, .overtaken = 8},
                                   {.to_compute = 20},
                                   {.to_compute = 700, .overtaken = 9}};
  EXPECT_EQ(queue_order(queue, 8), (Order{1, 3, 2, 0}));
}

TEST(QueueOrder, NobodyOvertakesOneThatWaitsForCellsAndThoseBeforeItKeepTheirPlace) {
  const std::vector<Waiting> queue{
      {.to_compute = 50}, {.to_compute = 900, .waits_for_cells = true}, {.to_compute = 20}, {.to_compute = 10}};
  EXPECT_EQ(queue_order(queue, 8), (Order{0, 1, 3, 2}));
}

TEST(QueueOrder, WithNoOvertakingItIsTheOrderOfArrival) {
  const std::vector<Waiting> queue{{.to_compute = 500}, {.to_compute = 20}, {.to_compute = 90}};
  EXPECT_EQ(queue_order(queue, 0), (Order{0, 1, 2}));
}

RC_GTEST_PROP(QueueOrder, EachIsThereOnceAndNobodyIsOvertakenMoreOftenThanTheLimit, ()) {
  std::vector<Waiting> queue;
  std::vector<std::int32_t> overtaken;  // of each that was ever in the queue, by id
  std::vector<std::size_t> ids;         // of those in the queue
  const auto limit = *rc::gen::inRange(0, 5);
  for (int i = 0; i < 60; ++i) {
    ids.push_back(overtaken.size());
    overtaken.push_back(0);
    queue.push_back({.to_compute = *rc::gen::inRange(0, 100)});
    if (i % 3 == 0) continue;
    auto order = queue_order(queue, limit);
    const std::size_t first = order.front();
    std::ranges::sort(order);
    for (std::size_t k = 0; k < order.size(); ++k) RC_ASSERT(order[k] == k);
    for (std::size_t k = 0; k < first; ++k) {
      ++queue[k].overtaken;
      ++overtaken[ids[k]];
    }
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(first));
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(first));
  }
  for (const std::int32_t times : overtaken) RC_ASSERT(times <= limit);
}

}  // namespace
}  // namespace coppice::sched
