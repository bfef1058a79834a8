#include "tier/cache_editor.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tier/record.h"

namespace coppice::tier {
namespace {

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;
constexpr double kWorthCompacting = 0.9;  // live share of a segment below which its dead bytes are worth the copying

TokenPos end_of(const Block& block) { return block.begin + static_cast<TokenPos>(block.tokens.size()); }

}  // namespace

Result<CacheEditor> CacheEditor::open(std::shared_ptr<FileSystem> files, const std::string& dir, TokenPos block_tokens,
                                      std::uint64_t record_bytes_max) {
  DiskOptions options{.dir = dir, .bytes_max = kNoLimit, .files = std::move(files)};
  options.check_index = true;
  options.segment_bytes = std::max(options.segment_bytes, record_bytes_max);
  auto opened = DiskStore::open(options, block_tokens);
  if (!opened) return std::unexpected(opened.error());
  CacheEditor editor;
  editor.store_ = std::move(opened->store);
  editor.blocks_ = std::move(opened->blocks);
  editor.records_ = std::move(opened->records);
  editor.block_tokens_ = block_tokens;
  for (const StoredBlock& stored : editor.blocks_) editor.ends_[stored.block.id] = end_of(stored.block);
  return editor;
}

// A block counts as used when something that goes on from it was: the order below never offers a parent before its
// children, as it is at least as young as they are and stands before them.
Result<Removed> CacheEditor::prune(const PruneLimits& limits) {
  std::unordered_map<BlockId, std::uint64_t, BlockIdHash> last_use;
  struct Prunable {
    std::uint64_t last_use = 0;
    const StoredBlock* stored = nullptr;
  };
  std::vector<Prunable> candidates;  // ends of chains first
  std::uint64_t live = 0;
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    const StoredBlock& stored = blocks_[i];
    if (!ends_.contains(stored.block.id)) continue;
    std::uint64_t& use = last_use[stored.block.id];
    use = std::max(use, stored.use.order);
    std::uint64_t& before = last_use[stored.block.parent];
    before = std::max(before, use);
    candidates.push_back({use, &stored});
    live += stored.record_bytes;
  }
  std::ranges::stable_sort(candidates, {}, &Prunable::last_use);
  std::vector<BlockId> gone;
  for (const Prunable& candidate : candidates) {
    const bool old = limits.used_since_us && candidate.last_use < *limits.used_since_us;
    const bool too_much = limits.keep_bytes && live > *limits.keep_bytes;
    if (!old && !too_much) break;
    gone.push_back(candidate.stored->block.id);
    live -= candidate.stored->record_bytes;
  }
  return erase(gone);
}

std::vector<BlockId> CacheEditor::with_descendants(std::span<const BlockId> ids) const {
  std::unordered_set<BlockId, BlockIdHash> chosen(ids.begin(), ids.end());
  std::vector<BlockId> all;
  for (const StoredBlock& stored : blocks_) {
    if (chosen.contains(stored.block.parent)) chosen.insert(stored.block.id);
    if (chosen.contains(stored.block.id) && ends_.contains(stored.block.id)) all.push_back(stored.block.id);
  }
  return all;
}

Result<Removed> CacheEditor::remove(std::span<const BlockId> ids) { return erase(with_descendants(ids)); }

Result<Removed> CacheEditor::erase(const std::vector<BlockId>& ids) {
  Removed removed;
  if (ids.empty()) return removed;
  const std::unordered_set<BlockId, BlockIdHash> going(ids.begin(), ids.end());
  for (const StoredBlock& stored : blocks_) {
    if (going.contains(stored.block.id) && ends_.erase(stored.block.id) == 1) removed.bytes += stored.record_bytes;
  }
  removed.blocks = going.size();
  if (auto erased = store_->erase(ids); !erased) return std::unexpected(erased.error());
  return removed;
}

Result<Removed> CacheEditor::compact(const OnProgress& progress) {
  Removed removed;
  const std::uint64_t total = store_->space().segment_bytes;
  while (store_->compaction_due(kWorthCompacting)) {
    const DiskSpace before = store_->space();
    if (auto done = store_->compact_piece(); !done) return std::unexpected(done.error());
    if (const auto bad = store_->take_found_bad(); !bad.empty()) {
      auto gone = remove(bad);
      if (!gone) return gone;
      removed.blocks += gone->blocks;
      removed.bytes += gone->bytes;
    }
    const DiskSpace& now = store_->space();
    progress(std::min(now.written_bytes, total), total);
    if (now.written_bytes == before.written_bytes && now.segment_bytes == before.segment_bytes) break;  // not removable
  }
  return removed;
}

Result<CacheEditor::Added> CacheEditor::add(std::span<const Block> blocks, std::span<const BlockUse> uses) {
  Added added;
  std::vector<DiskStore::Write> writes;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    if (ends_.contains(block.id)) {
      ++added.known;
      continue;
    }
    const auto parent = ends_.find(block.parent);
    const bool fits =
        parent == ends_.end() ? block.begin == 0 : block.begin == parent->second && block.begin % block_tokens_ == 0;
    if (!fits || static_cast<TokenPos>(block.tokens.size()) > block_tokens_) {
      ++added.misfit;
      continue;
    }
    ends_[block.id] = end_of(block);
    writes.push_back({&block, uses[i]});
    ++added.blocks;
    added.bytes += record_size(block.tokens.size(), block.state->size());
  }
  std::vector<std::size_t> left_out;  // none: their parents are there
  if (auto written = store_->write(writes, left_out); !written) return std::unexpected(written.error());
  return added;
}

Result<void> CacheEditor::change_records(std::span<const RecordChange> changes) {
  return store_->change_records(changes);
}

}  // namespace coppice::tier
