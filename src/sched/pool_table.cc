#include "sched/pool_table.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace coppice::sched {

Pool* PoolTable::find(NamespaceId ns, const std::string& name) {
  const auto it = pools_.find({ns, name});
  return it == pools_.end() ? nullptr : &it->second;
}

const Pool* PoolTable::of(SeqId seq) const {
  const auto it =
      std::find_if(pools_.begin(), pools_.end(), [&](const auto& entry) { return entry.second.seq() == seq; });
  return it == pools_.end() ? nullptr : &it->second;
}

void PoolTable::add(Pool pool) {
  assert(!full());
  std::pair key(pool.ns, pool.name);
  [[maybe_unused]] const bool is_new = pools_.emplace(std::move(key), std::move(pool)).second;
  assert(is_new);
}

Pool PoolTable::take(NamespaceId ns, const std::string& name) {
  auto node = pools_.extract({ns, name});
  assert(!node.empty());
  return std::move(node.mapped());
}

std::vector<const Pool*> PoolTable::all() const {
  std::vector<const Pool*> result;
  for (const auto& [key, pool] : pools_) result.push_back(&pool);
  return result;
}

std::optional<TimePoint> PoolTable::next_expiry() const {
  std::optional<TimePoint> first;
  for (const auto& [key, pool] : pools_) {
    if (pool.expires && (!first || *pool.expires < *first)) first = pool.expires;
  }
  return first;
}

}  // namespace coppice::sched
