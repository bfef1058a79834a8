#include "tier/disk_store.h"

#include <algorithm>
#include <cassert>

#include "obs/log.h"
#include "tier/record.h"

namespace coppice::tier {

std::string DiskStore::segment_path(std::uint64_t number, bool named_open) const {
  return options_.dir + "/" + segment_name({number, named_open});
}

DiskStore::DiskStore(const DiskOptions& options, std::shared_ptr<FileSystem> files)
    : options_(options), budget_(disk_budget(options)), files_(std::move(files)) {}

DiskStore::~DiskStore() { (void)seal(); }

Result<void> DiskStore::write(std::span<const Write> writes, std::vector<std::size_t>& left_out) {
  left_out.clear();
  std::unordered_set<BlockId, BlockIdHash> accepted;
  std::vector<std::size_t> chosen;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const Block& block = *writes[i].block;
    if (places_.contains(block.id)) continue;
    if (block.begin > 0 && !places_.contains(block.parent) && !accepted.contains(block.parent)) {
      left_out.push_back(i);
    } else if (accepted.insert(block.id).second) {
      chosen.push_back(i);
      bytes += record_size(block.tokens.size(), block.state->size());
    }
  }
  if (auto made = make_space(bytes); !made) return made;

  IndexChanges changes;
  std::vector<Place> places;
  for (const std::size_t i : chosen) {
    const Block& block = *writes[i].block;
    Place& place = places.emplace_back();
    if (auto appended = append(block, place); !appended) return appended;
    Block named{.id = block.id, .parent = block.parent, .begin = block.begin, .tokens = block.tokens, .state = nullptr};
    changes.insert.push_back({.block = std::move(named),
                              .segment = place.segment,
                              .offset = place.offset,
                              .record_bytes = place.record_bytes,
                              .payload_bytes = place.payload_bytes,
                              .use = writes[i].use});
  }
  if (auto synced = sync(); !synced) return synced;
  if (auto committed = commit(changes); !committed) return committed;
  for (std::size_t i = 0; i < chosen.size(); ++i) settle(writes[chosen[i]].block->id, places[i]);
  return {};
}

Result<void> DiskStore::append(const Block& block, Place& place) {
  const std::uint64_t bytes = record_size(block.tokens.size(), block.state->size());
  if (bytes > budget_.record_bytes_max) return fail(ErrorKind::internal, "the block is larger than a segment");
  if (file_ && segments_[open_number_].bytes + bytes > budget_.segment_bytes) {
    if (auto sealed = seal(); !sealed) return sealed;
  }
  if (!file_) {
    if (auto opened = open_segment(); !opened) return opened;
  }
  Segment& segment = segments_[open_number_];
  place = {
      .segment = open_number_, .offset = segment.bytes, .record_bytes = bytes, .payload_bytes = block.state->size()};
  auto done = file_->append(record_head(block));
  if (done) done = file_->append(*block.state);
  if (!done) {
    abandon();
    return done;
  }
  segment.bytes += bytes;
  space_.segment_bytes += bytes;
  space_.written_bytes += bytes;
  return {};
}

Result<void> DiskStore::open_segment() {
  // A cache is no reason for a full disk: it stops while others still have room.
  const auto free = files_->free_bytes(options_.dir);
  if (!free) return std::unexpected(free.error());
  if (*free < 2 * budget_.segment_bytes) {
    return std::unexpected(Error{ErrorKind::internal, "the file system is nearly full", {}, "full"});
  }
  auto file = files_->create(segment_path(next_number_, true));
  if (!file) return std::unexpected(file.error());
  open_number_ = next_number_++;
  segments_[open_number_].named_open = true;
  file_ = std::move(*file);
  folder_dirty_ = true;
  return {};
}

// What was appended, and the names of the files that it is in, survive a power cut.
Result<void> DiskStore::sync() {
  if (file_) {
    if (auto synced = file_->sync(); !synced) {
      abandon();  // what of it reached the disk cannot be known any more
      return synced;
    }
  }
  if (folder_dirty_) {
    if (auto synced = files_->sync_folder(options_.dir); !synced) return synced;
    folder_dirty_ = false;
  }
  return {};
}

Result<void> DiskStore::seal() {
  if (!file_) return {};
  const auto synced = file_->sync();
  abandon();
  return synced;
}

void DiskStore::abandon() {
  file_ = nullptr;
  Segment& segment = segments_[open_number_];
  // After an error more may be there than was counted. It is dead bytes; without it the count is right again.
  (void)files_->truncate(segment_path(open_number_, true), segment.bytes);
  if (files_->rename(segment_path(open_number_, true), segment_path(open_number_, false))) {
    segment.named_open = false;
    folder_dirty_ = true;
  }
  open_number_ = 0;
}

// REQUIRES: the bytes that `changes` speak of are synced.
Result<void> DiskStore::commit(IndexChanges& changes) {
  changes.erase.insert(changes.erase.end(), unerased_.begin(), unerased_.end());
  auto applied = index_->apply(changes);
  if (applied) unerased_.clear();
  return applied;
}

void DiskStore::settle(const BlockId& id, const Place& place) {
  Segment& segment = segments_[place.segment];
  segment.live_bytes += place.record_bytes;
  segment.blocks.insert(id);
  places_[id] = place;
}

void DiskStore::forget(const BlockId& id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  Segment& segment = segments_[found->second.segment];
  segment.live_bytes -= found->second.record_bytes;
  segment.blocks.erase(id);
  places_.erase(found);
}

Result<Payload> DiskStore::read(const BlockId& id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return fail(ErrorKind::not_found, "the block is not on disk");
  auto block = read_record(id, found->second);
  if (!block) return std::unexpected(block.error());
  return std::move(block->state);
}

Result<Block> DiskStore::read_record(const BlockId& id, const Place& place) {
  auto block = tier::read_record(*files_, segment_path(place.segment, segments_[place.segment].named_open), place, id);
  space_.read_bytes += place.record_bytes;
  return block;
}

Result<void> DiskStore::erase(std::span<const BlockId> ids) {
  for (const BlockId& id : ids) forget(id);
  unerased_.insert(unerased_.end(), ids.begin(), ids.end());
  IndexChanges changes;
  auto committed = commit(changes);
  // Whatever became of it: a row whose segment is gone counts for nothing at the next open.
  remove_dead_segments();
  return committed;
}

Result<void> DiskStore::set_uses(std::span<const BlockUse> uses) {
  IndexChanges changes;
  changes.use.assign(uses.begin(), uses.end());
  return commit(changes);
}

Result<void> DiskStore::change_records(std::span<const RecordChange> records) {
  IndexChanges changes;
  changes.records.assign(records.begin(), records.end());
  return commit(changes);
}

void DiskStore::check_invariants() const {
  std::map<std::uint64_t, std::uint64_t> live;
  for (const auto& [id, place] : places_) {
    live[place.segment] += place.record_bytes;
    assert(segments_.at(place.segment).blocks.contains(id));
    assert(place.offset + place.record_bytes <= segments_.at(place.segment).bytes);
  }
  std::uint64_t bytes = 0;
  for (const auto& [number, segment] : segments_) {
    assert(segment.live_bytes == live[number] && segment.live_bytes <= segment.bytes);
    bytes += segment.bytes;
  }
  assert(bytes == space_.segment_bytes && bytes <= options_.bytes_max);
}

}  // namespace coppice::tier
