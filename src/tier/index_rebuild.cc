#include "tier/index_rebuild.h"

#include <chrono>
#include <unordered_set>
#include <utility>
#include <vector>

#include "obs/log.h"
#include "tier/segment_scan.h"

namespace coppice::tier {
namespace {

constexpr std::chrono::seconds kLogEvery{5};

}  // namespace

Result<void> rebuild_index(DiskIndex& index, FileSystem& files, const std::string& dir, std::uint64_t now_us) {
  const auto segments = segments_in(files, dir);
  if (!segments) return std::unexpected(segments.error());
  if (segments->empty()) return {};
  obs::log_warn("cache index is made again", "dir={} segments={} reason=\"there was none that can be read\"", dir,
                segments->size());
  std::unordered_set<BlockId, BlockIdHash> found;
  std::size_t done = 0;
  auto logged = std::chrono::steady_clock::now();
  for (const SegmentFacts& segment : *segments) {
    auto rows = scan_segment(files, dir, segment);
    if (!rows) {
      obs::log_warn("cache segment unreadable", "dir={} segment={} reason=\"{}\"", dir, segment.name.number,
                    rows.error().message);
      rows.emplace();
    }
    IndexChanges changes;
    for (IndexRow& row : *rows) {
      row.use = {row.block.id, now_us++, 0};
      found.insert(row.block.id);
      changes.insert.push_back(std::move(row));  // the newest copy of a block takes the place of older ones
    }
    if (auto applied = index.apply(changes); !applied) return applied;
    ++done;
    if (std::chrono::steady_clock::now() - logged < kLogEvery) continue;
    logged = std::chrono::steady_clock::now();
    obs::log_info("cache index is made again", "segments_done={} segments={} blocks={}", done, segments->size(),
                  found.size());
  }
  obs::log_warn("cache index made again", "dir={} blocks={} lost=\"sessions and pools of before\"", dir, found.size());
  return {};
}

}  // namespace coppice::tier
