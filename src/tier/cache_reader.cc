#include "tier/cache_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tier/cache_folder.h"
#include "tier/record.h"

namespace coppice::tier {
namespace {

constexpr int kMovesMax = 8;  // of one block while it is being read; a server moves it once at most, in practice

bool same_place(const IndexRow& a, const IndexRow& b) { return a.segment == b.segment && a.offset == b.offset; }

}  // namespace

Result<CacheReader> CacheReader::open(std::shared_ptr<FileSystem> files, const std::string& dir) {
  if (auto ours = check_folder(*files, dir); !ours) return std::unexpected(ours.error());
  CacheReader reader(std::move(files), dir);
  auto index = DiskIndex::open_to_read(dir + "/" + kIndexName);
  if (!index) return std::unexpected(index.error());
  reader.index_ = std::move(*index);
  if (auto loaded = reader.load(); !loaded) return std::unexpected(loaded.error());
  return reader;
}

Result<void> CacheReader::load() {
  auto rows = index_->rows();
  if (!rows) return std::unexpected(rows.error());
  for (IndexRow& row : *rows) blocks_.push_back({.row = std::move(row), .problem = {}});
  auto records = index_->records();
  if (!records) return std::unexpected(records.error());
  records_ = std::move(*records);
  find_parents();
  if (auto listed = list_segments(); !listed) return listed;
  for (const CachedBlock& block : blocks_) {
    if (block.problem.empty()) segments_[block.row.segment].live_bytes += block.row.record_bytes;
  }
  return {};
}

// The rules of DiskStore::load_blocks, which drops what breaks them.
void CacheReader::find_parents() {
  std::unordered_map<BlockId, std::size_t, BlockIdHash> places;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    CachedBlock& block = blocks_[i];
    const Block& b = block.row.block;
    const auto n = static_cast<TokenPos>(b.tokens.size());
    if (!names(b.id, b.parent, b.tokens)) {
      block.problem = "its name is not that of its tokens";
      continue;
    }
    if (block.row.payload_bytes > block.row.record_bytes ||
        block.row.record_bytes != record_size(b.tokens.size(), block.row.payload_bytes)) {
      block.problem = "its sizes contradict each other";
      continue;
    }
    const auto parent = places.find(b.parent);
    const bool is_first = parent == places.end();
    const Block* before = is_first ? nullptr : &blocks_[parent->second].row.block;
    if (b.begin != (is_first ? 0 : before->begin + static_cast<TokenPos>(before->tokens.size()))) {
      block.problem = is_first ? "what it goes on from is missing" : "it is not where the one before it ends";
      continue;
    }
    if (!is_first) {
      block.parent = parent->second;
      full_tokens_ = std::max(full_tokens_, static_cast<TokenPos>(before->tokens.size()));
    }
    tokens_max_ = std::max(tokens_max_, n);
    places[b.id] = i;
  }
  for (CachedBlock& block : blocks_) {
    if (!block.problem.empty() || block.parent == CachedBlock::kNone) continue;
    const CachedBlock& before = blocks_[block.parent];
    if (!before.problem.empty()) {
      block.problem = "what it goes on from is missing";
    } else if (static_cast<TokenPos>(before.row.block.tokens.size()) != full_tokens_) {
      block.problem = "it goes on from a block that is not full";
    }
  }
}

Result<void> CacheReader::list_segments() {
  const auto files = files_->list(dir_);
  if (!files) return std::unexpected(files.error());
  for (auto& [number, space] : segments_) space.bytes = 0;
  for (const FileInfo& file : *files) {
    const auto name = parse_segment_name(file.name);
    if (!name) continue;
    segments_[name->number].bytes = file.bytes;
    segments_[name->number].named_open = name->named_open;
  }
  return {};
}

std::string CacheReader::model_of(const BlockId& root) const {
  const std::string key = hex(root);
  const auto found = std::ranges::find_if(
      records_, [&](const RecordChange& record) { return record.kind == kRootRecordKind && record.key == key; });
  return found == records_.end() ? "" : *found->value;
}

BlockId CacheReader::root_of(const CachedBlock& block) const {
  const CachedBlock* first = &block;
  while (first->parent != CachedBlock::kNone) first = &blocks_[first->parent];
  return first->row.block.parent;
}

Result<Block> CacheReader::read(const CachedBlock& block) {
  if (!block.problem.empty()) return fail(ErrorKind::internal, block.problem);
  IndexRow row = block.row;
  for (int i = 0; i < kMovesMax; ++i) {
    auto read = read_at(row);
    if (read) return read;
    // A server may have moved the block, given it up, or renamed or extended the segment since we looked.
    auto now = index_->find(row.block.id);
    if (!now) return std::unexpected(now.error());
    if (!*now) return std::unexpected(Error{ErrorKind::not_found, "the server has given it up", {}, kGoneCode});
    if (auto listed = list_segments(); !listed) return std::unexpected(listed.error());
    if (same_place(**now, row) && i > 0) return read;
    row = std::move(**now);
  }
  return fail(ErrorKind::internal, "it moves faster than it can be read");
}

Result<Block> CacheReader::read_at(const IndexRow& row) {
  const auto segment = segments_.find(row.segment);
  if (segment == segments_.end() || segment->second.bytes == 0) {
    return fail(ErrorKind::internal, "its segment is missing");
  }
  const std::uint64_t bytes = segment->second.bytes;
  if (row.payload_bytes > row.record_bytes || row.record_bytes > bytes || row.offset > bytes - row.record_bytes) {
    return fail(ErrorKind::internal, "its segment ends before it");
  }
  return read_record(*files_, dir_ + "/" + segment_name({row.segment, segment->second.named_open}),
                     {row.segment, row.offset, row.record_bytes, row.payload_bytes}, row.block.id);
}

}  // namespace coppice::tier
