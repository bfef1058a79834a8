#include "sched/queue_order.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace coppice::sched {

std::vector<std::size_t> queue_order(std::span<const Waiting> queue, std::int32_t overtake_limit) {
  std::size_t in_order = 0;  // so many of the first may not change places
  for (std::size_t i = 0; i < queue.size(); ++i) {
    if (queue[i].waits_for_cells) in_order = i + 1;
  }
  const auto key = [&](std::size_t i) {
    const bool due = i < in_order || queue[i].overtaken >= overtake_limit;
    return std::tuple(!due, due ? 0 : queue[i].to_compute, i);
  };
  std::vector<std::size_t> order(queue.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, key);
  return order;
}

}  // namespace coppice::sched
