#include "tier/cache_check.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tier/cache_folder.h"
#include "tier/segment_scan.h"

namespace coppice::tier {
namespace {

CheckResult read_all(CacheReader& cache, const OnProgress& progress) {
  CheckResult result;
  std::uint64_t total = 0, done = 0;
  for (const CachedBlock& block : cache.blocks()) total += block.row.record_bytes;
  std::vector<bool> broken(cache.blocks().size());
  for (std::size_t i = 0; i < cache.blocks().size(); ++i) {
    const CachedBlock& block = cache.blocks()[i];
    const auto read = cache.read(block);
    const bool after_bad = block.parent != CachedBlock::kNone && broken[block.parent];
    if (read) {
      ++result.blocks;
      result.bytes += block.row.record_bytes;
      result.lost += after_bad ? 1 : 0;
      broken[i] = after_bad;
    } else if (read.error().code == kGoneCode) {
      ++result.gone;
    } else {
      broken[i] = true;
      result.bad.push_back({block.row.block.id, block.row.segment, block.row.offset, read.error().message});
    }
    done += block.row.record_bytes;
    progress(done, total);
  }
  return result;
}

// What the segments hold, whatever an index says of it, and how large a block and a record are at most.
struct SegmentsRead {
  CheckResult result;
  TokenPos block_tokens = 1;
  std::uint64_t record_bytes_max = 0;
};
Result<SegmentsRead> read_segments(FileSystem& files, const std::string& dir, const OnProgress& progress) {
  SegmentsRead read;
  CheckResult& result = read.result;
  const auto segments = segments_in(files, dir);
  if (!segments) return std::unexpected(segments.error());
  std::uint64_t total = 0, done = 0;
  for (const SegmentFacts& segment : *segments) total += segment.bytes;
  for (const SegmentFacts& segment : *segments) {
    const auto rows = scan_segment(files, dir, segment);
    if (!rows) return std::unexpected(rows.error());
    for (const IndexRow& row : *rows) {
      read.block_tokens = std::max(read.block_tokens, static_cast<TokenPos>(row.block.tokens.size()));
      read.record_bytes_max = std::max(read.record_bytes_max, row.record_bytes);
      const RecordPlace place{row.segment, row.offset, row.record_bytes, row.payload_bytes};
      const auto block = read_record(files, dir + "/" + segment_name(segment.name), place, row.block.id);
      if (block) {
        ++result.blocks;
        result.bytes += row.record_bytes;
        std::erase_if(result.bad, [&](const BadBlock& bad) { return bad.id == row.block.id; });  // an older copy
      } else {
        result.bad.push_back({row.block.id, row.segment, row.offset, block.error().message});
      }
      progress(done + row.offset + row.record_bytes, total);
    }
    done += segment.bytes;
  }
  return read;
}

// The folder, unless its index is damaged or missing: then `problem` says so.
Result<std::optional<CacheReader>> open_whole(const std::shared_ptr<FileSystem>& files, const std::string& dir,
                                              std::string& problem) {
  auto cache = CacheReader::open(files, dir);
  const auto sound = cache ? cache->check_index() : Result<void>(std::unexpected(cache.error()));
  if (sound) return std::optional(std::move(*cache));
  const bool missing = sound.error().kind == ErrorKind::not_found && check_folder(*files, dir).has_value() &&
                       !segments_in(*files, dir).value_or(std::vector<SegmentFacts>{}).empty();
  if (sound.error().code != "corrupt" && !missing) return std::unexpected(sound.error());
  problem = sound.error().message;
  return std::nullopt;
}

// Removes what is bad. The rows that are left.
Result<std::uint64_t> remove_bad(CacheEditor& editor, const CheckResult& found) {
  std::vector<BlockId> bad;
  bad.reserve(found.bad.size());
  for (const BadBlock& block : found.bad) bad.push_back(block.id);
  if (auto removed = editor.remove(bad); !removed) return std::unexpected(removed.error());
  return editor.size();
}

Result<RepairResult> rebuild(const std::shared_ptr<FileSystem>& files, const std::string& dir,
                             const std::string& problem, const OnProgress& progress) {
  auto read = read_segments(*files, dir, progress);
  if (!read) return std::unexpected(read.error());
  auto editor = CacheEditor::open(files, dir, read->block_tokens, read->record_bytes_max);
  if (!editor) return std::unexpected(editor.error());
  const std::uint64_t rows = editor->size();
  const auto left = remove_bad(*editor, read->result);
  if (!left) return std::unexpected(left.error());
  read->result.index_problem = problem;
  return RepairResult{.found = std::move(read->result), .removed = rows - *left};
}

}  // namespace

Result<CheckResult> check_cache(const std::shared_ptr<FileSystem>& files, const std::string& dir,
                                const OnProgress& progress) {
  std::string problem;
  auto cache = open_whole(files, dir, problem);
  if (!cache) return std::unexpected(cache.error());
  if (*cache) return read_all(**cache, progress);
  auto read = read_segments(*files, dir, progress);
  if (!read) return std::unexpected(read.error());
  read->result.index_problem = problem;
  return std::move(read->result);
}

Result<RepairResult> repair_cache(const std::shared_ptr<FileSystem>& files, const std::string& dir,
                                  const OnProgress& progress) {
  RepairResult result;
  auto cache = open_whole(files, dir, result.found.index_problem);
  if (!cache) return std::unexpected(cache.error());
  if (!*cache) return rebuild(files, dir, result.found.index_problem, progress);
  const std::uint64_t rows = (*cache)->blocks().size();
  const TokenPos block_tokens = std::max({(*cache)->full_tokens(), (*cache)->tokens_max(), TokenPos{1}});
  std::uint64_t record_bytes_max = 0;
  for (const CachedBlock& block : (*cache)->blocks()) {
    if (block.problem.empty()) record_bytes_max = std::max(record_bytes_max, block.row.record_bytes);
  }
  // From here on no server has the folder. This drops the rows that have a problem, or that no segment has room for;
  // they are still among those that are read, and reported.
  auto editor = CacheEditor::open(files, dir, block_tokens, record_bytes_max);
  if (!editor) return std::unexpected(editor.error());
  result.found = read_all(**cache, progress);
  const auto left = remove_bad(*editor, result.found);
  if (!left) return std::unexpected(left.error());
  result.removed = rows - std::min(rows, *left);
  return result;
}

}  // namespace coppice::tier
