// Opening the disk store: what a server that ended, was killed or lost its power left behind.
#include <fmt/format.h>

#include <algorithm>

#include "obs/log.h"
#include "tier/cache_folder.h"
#include "tier/disk_store.h"
#include "tier/index_rebuild.h"
#include "tier/record.h"
#include "tier/segment_file.h"

namespace coppice::tier {

Result<DiskStore::Opened> DiskStore::open(const DiskOptions& options, TokenPos block_tokens) {
  Opened opened;
  auto files = options.files ? options.files : system_files();
  auto folder = take_folder(*files, options.dir);
  if (!folder) return std::unexpected(folder.error());
  opened.secret = std::move(folder->secret);
  std::unique_ptr<DiskStore> store(new DiskStore(options, std::move(files)));
  store->lock_ = std::move(folder->lock);
  const auto unusable = [&](const Error& error) {
    return invalid(fmt::format("the cache folder {} cannot be used: {}", options.dir, error.message));
  };
  if (auto listed = store->list_segments(); !listed) return unusable(listed.error());
  auto index = DiskIndex::open(options.dir + "/" + kIndexName, options.check_index);
  if (!index) return unusable(index.error());
  store->index_ = std::move(*index);
  if (store->index_->is_new()) {
    auto rebuilt = rebuild_index(*store->index_, *store->files_, options.dir, options.now_us());
    if (rebuilt) rebuilt = store->index_->complete();
    if (!rebuilt) return unusable(rebuilt.error());
  }
  auto blocks = store->load_blocks(block_tokens);
  if (!blocks) return unusable(blocks.error());
  opened.blocks = std::move(*blocks);
  auto records = store->index_->records();
  if (!records) return unusable(records.error());
  opened.records = std::move(*records);
  store->tidy_segments();
  opened.store = std::move(store);
  return opened;
}

Result<void> DiskStore::list_segments() {
  const auto files = files_->list(options_.dir);
  if (!files) return std::unexpected(files.error());
  for (const FileInfo& file : *files) {
    const auto name = parse_segment_name(file.name);
    if (!name) continue;
    Segment& segment = segments_[name->number];
    segment.bytes = file.bytes;
    segment.named_open = name->named_open;
    space_.segment_bytes += file.bytes;
    next_number_ = std::max(next_number_, name->number + 1);
  }
  return {};
}

// What a row says could be true. Whether it is, the record's checksum says when it is read.
bool DiskStore::plausible(const IndexRow& row, TokenPos block_tokens) const {
  const auto segment = segments_.find(row.segment);
  const std::size_t n = row.block.tokens.size();
  return segment != segments_.end() && row.block.begin >= 0 && n <= static_cast<std::size_t>(block_tokens) &&
         row.payload_bytes <= segment->second.bytes && row.record_bytes == record_size(n, row.payload_bytes) &&
         row.record_bytes <= segment->second.bytes && row.offset <= segment->second.bytes - row.record_bytes &&
         names(row.block.id, row.block.parent, row.block.tokens);
}

Result<std::vector<StoredBlock>> DiskStore::load_blocks(TokenPos block_tokens) {
  auto rows = index_->rows();
  if (!rows) return std::unexpected(rows.error());
  std::unordered_map<BlockId, TokenPos, BlockIdHash> full_ends;  // where a full block ends: another one may go on there
  std::vector<StoredBlock> blocks;
  for (IndexRow& row : *rows) {
    Block& block = row.block;
    const auto parent = full_ends.find(block.parent);
    const bool in_place = parent == full_ends.end() ? block.begin == 0 : parent->second == block.begin;
    if (!in_place || !plausible(row, block_tokens) || places_.contains(block.id)) {
      unerased_.push_back(block.id);
      continue;
    }
    const auto n = static_cast<TokenPos>(block.tokens.size());
    if (n == block_tokens) full_ends[block.id] = block.begin + n;
    settle(block.id, {.segment = row.segment,
                      .offset = row.offset,
                      .record_bytes = row.record_bytes,
                      .payload_bytes = row.payload_bytes});
    blocks.push_back({std::move(block), row.payload_bytes, row.record_bytes, row.use});
  }
  if (!unerased_.empty()) {
    obs::log_warn("cached blocks dropped", "dir={} blocks={} reason=\"their bytes or beginnings are missing\"",
                  options_.dir, unerased_.size());
    IndexChanges none;
    (void)commit(none);  // tried again with the next change
  }
  return blocks;
}

// Nothing here may fail the start: what cannot be tidied is dead bytes, and is counted as such.
void DiskStore::tidy_segments() {
  remove_dead_segments();
  for (auto& [number, segment] : segments_) {
    if (!segment.named_open) continue;
    // The end of it, behind the last block that the index knows, was never synced.
    std::uint64_t end = 0;
    for (const BlockId& id : segment.blocks) end = std::max(end, places_.at(id).offset + places_.at(id).record_bytes);
    if (files_->truncate(segment_path(number, true), end)) {
      space_.segment_bytes -= segment.bytes - end;
      segment.bytes = end;
    }
    if (files_->rename(segment_path(number, true), segment_path(number, false))) segment.named_open = false;
  }
  folder_dirty_ = true;
}

}  // namespace coppice::tier
