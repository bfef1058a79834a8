#include "tier/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "tier/export_file.h"

namespace coppice::tier {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Which blocks go into the file, by their places in blocks().
Result<std::vector<bool>> choose(const CacheReader& cache, const std::vector<std::string>& chains) {
  const auto& blocks = cache.blocks();
  std::vector<bool> chosen(blocks.size(), chains.empty());
  for (const std::string& chain : chains) {
    const std::string prefix = lower_case(chain);
    std::size_t match = CachedBlock::kNone;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (!hex(blocks[i].row.block.id).starts_with(prefix)) continue;
      if (match != CachedBlock::kNone) return invalid(fmt::format("several blocks' names begin with {}", chain));
      match = i;
    }
    if (match == CachedBlock::kNone) return invalid(fmt::format("no block's name begins with {}", chain));
    for (std::size_t i = match; i != CachedBlock::kNone; i = blocks[i].parent) chosen[i] = true;
  }
  return chosen;
}

bool wanted(const RecordChange& record, bool everything, const std::set<std::string>& roots) {
  return record.value && (everything || (record.kind == kRootRecordKind && roots.contains(record.key)));
}

}  // namespace

Result<Exported> export_cache(CacheReader& cache, FileSystem& files, const std::vector<std::string>& chains,
                              const std::string& path, const OnProgress& progress) {
  const auto chosen = choose(cache, chains);
  if (!chosen) return std::unexpected(chosen.error());
  const auto writer = ExportWriter::create(files, path, cache.full_tokens());
  if (!writer) return std::unexpected(writer.error());
  const auto& blocks = cache.blocks();
  std::uint64_t total = 0, done = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) total += (*chosen)[i] ? blocks[i].row.record_bytes : 0;
  Exported exported;
  std::set<std::string> roots;
  std::vector<bool> written(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!(*chosen)[i]) continue;
    const CachedBlock& block = blocks[i];
    done += block.row.record_bytes;
    progress(done, total);
    const bool first = block.parent == CachedBlock::kNone;
    if (!first && !written[block.parent]) continue;  // counted with the one that is missing
    const auto read = cache.read(block);
    if (!read) {
      ++(read.error().code == kGoneCode ? exported.gone : exported.bad);
      continue;
    }
    if (auto added = (*writer)->add(*read, block.row.use); !added) return std::unexpected(added.error());
    if (first) roots.insert(hex(block.row.block.parent));
    written[i] = true;
    ++exported.blocks;
    exported.bytes += block.row.record_bytes;
  }
  for (const RecordChange& record : cache.records()) {
    if (record.kind == kHourRecordKind || !wanted(record, chains.empty(), roots)) continue;
    if (auto added = (*writer)->add(record); !added) return std::unexpected(added.error());
    ++exported.records;
  }
  if (auto finished = (*writer)->finish(); !finished) return std::unexpected(finished.error());
  return exported;
}

}  // namespace coppice::tier
