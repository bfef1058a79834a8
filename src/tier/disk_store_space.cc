// Where the disk store's bytes go: the budget, dead segments, compaction.
#include <algorithm>
#include <cassert>

#include "obs/log.h"
#include "tier/disk_store.h"
#include "tier/record.h"

namespace coppice::tier {
namespace {

constexpr std::uint64_t kPieceBytesMax = std::uint64_t{16}
                                         << 20;  // of idle compaction: a read waits no longer than this

}  // namespace

// One segment's worth of bytes is kept free, as compaction copies before it removes. A quarter of the rest may be dead,
// so that compaction always finds a segment that gives more than it costs.
DiskBudget disk_budget(const DiskOptions& options) {
  DiskBudget budget;
  budget.segment_bytes = std::max<std::uint64_t>(1, std::min(options.segment_bytes, options.bytes_max / 4));
  budget.live_bytes_max = (options.bytes_max - std::min(options.bytes_max, budget.segment_bytes)) / 4 * 3;
  budget.record_bytes_max = budget.segment_bytes;
  return budget;
}

void DiskStore::remove_dead_segments() {
  for (auto it = segments_.begin(); it != segments_.end();) {
    const auto& [number, segment] = *it;
    const bool dead = segment.live_bytes == 0 && !(file_ && number == open_number_);
    if (dead && files_->remove(segment_path(number, segment.named_open))) {
      space_.segment_bytes -= segment.bytes;
      it = segments_.erase(it);
    } else {
      ++it;
    }
  }
}

std::uint64_t DiskStore::emptiest() const {
  std::uint64_t best = 0;
  double least = 1;
  for (const auto& [number, segment] : segments_) {
    if ((file_ && number == open_number_) || segment.bytes == 0) continue;
    const double share = static_cast<double>(segment.live_bytes) / static_cast<double>(segment.bytes);
    if (share >= least) continue;
    best = number;
    least = share;
  }
  return best;
}

// So that `bytes` more leave a segment's worth free.
Result<void> DiskStore::make_space(std::uint64_t bytes) {
  remove_dead_segments();
  while (space_.segment_bytes + bytes + budget_.segment_bytes > options_.bytes_max) {
    const std::uint64_t number = emptiest();
    if (number == 0 && !file_) {
      return std::unexpected(Error{ErrorKind::internal, "the disk tier has no bytes left to give up", {}, "full"});
    }
    if (number == 0) {  // only the open segment has dead bytes
      if (auto sealed = seal(); !sealed) return sealed;
      remove_dead_segments();
      continue;
    }
    const std::uint64_t before = space_.segment_bytes;
    if (auto done = compact(number, segments_.at(number).bytes); !done) return done;
    if (space_.segment_bytes >= before) {
      return std::unexpected(Error{ErrorKind::internal, "a segment could not be removed", {}, "full"});
    }
  }
  return {};
}

bool DiskStore::compaction_due(double live_share_max) const {
  const std::uint64_t number = emptiest();
  if (number == 0) return false;
  const Segment& segment = segments_.at(number);
  return static_cast<double>(segment.live_bytes) < live_share_max * static_cast<double>(segment.bytes);
}

Result<void> DiskStore::compact_piece() { return compact(emptiest(), kPieceBytesMax); }

// Moves up to so many live bytes (at least one block) out of the segment, and removes it if none are left.
Result<void> DiskStore::compact(std::uint64_t number, std::uint64_t bytes_max) {
  const Segment& segment = segments_.at(number);
  IndexChanges changes;
  std::vector<std::pair<BlockId, Place>> moved;
  std::vector<BlockId> bad;
  std::uint64_t bytes = 0;
  for (const BlockId& id : segment.blocks) {
    const Place from = places_.at(id);
    if (bytes > 0 && bytes + from.record_bytes > bytes_max) break;
    bytes += from.record_bytes;
    const auto block = read_record(id, from);
    if (!block) {
      obs::log_warn("bad block found", "id={} reason=\"{}\"", short_hex(id), block.error().message);
      bad.push_back(id);
      continue;
    }
    Place to;
    if (auto appended = append(*block, to); !appended) return appended;
    moved.emplace_back(id, to);
    changes.move.push_back({id, to.segment, to.offset});
  }
  if (auto synced = sync(); !synced) return synced;
  for (const BlockId& id : bad) forget(id);
  unerased_.insert(unerased_.end(), bad.begin(), bad.end());
  found_bad_.insert(found_bad_.end(), bad.begin(), bad.end());
  if (auto committed = commit(changes); !committed) return committed;
  for (const auto& [id, to] : moved) {
    forget(id);
    settle(id, to);
  }
  remove_dead_segments();
  return {};
}

}  // namespace coppice::tier
