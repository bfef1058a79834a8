// Named pools: prefixes that are pinned under a name until they are deleted or their time is over (spec A12).
// A pool is a sequence with a lease on it, which nothing evicts.
// Owner: the scheduler, on the engine thread. Bounded by `pools_max`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "kv/lease.h"

namespace coppice::sched {

struct Pool {
  NamespaceId ns;
  std::string name;
  kv::Lease lease;  // on its sequence
  TimePoint made{}, last_use{};
  std::optional<TimePoint> expires;
  std::int64_t uses = 0;  // requests that started from it
  SeqId seq() const { return lease.seq(); }
};

class PoolTable {
 public:
  explicit PoolTable(std::size_t pools_max) : pools_max_(pools_max) {}

  Pool* find(NamespaceId ns, const std::string& name);
  const Pool* find(NamespaceId ns, const std::string& name) const {
    return const_cast<PoolTable*>(this)->find(ns, name);
  }
  const Pool* of(SeqId seq) const;
  Pool* of(SeqId seq) { return const_cast<Pool*>(std::as_const(*this).of(seq)); }

  bool full() const { return pools_.size() >= pools_max_; }
  std::size_t size() const { return pools_.size(); }

  // REQUIRES: !full(); no pool of that name and namespace.
  void add(Pool pool);
  // Takes it out of the table. REQUIRES: it is there.
  Pool take(NamespaceId ns, const std::string& name);

  std::vector<const Pool*> all() const;
  std::optional<TimePoint> next_expiry() const;

 private:
  std::size_t pools_max_;
  std::map<std::pair<NamespaceId, std::string>, Pool> pools_;
};

}  // namespace coppice::sched
