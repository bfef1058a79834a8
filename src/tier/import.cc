#include "tier/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "tier/cache_reader.h"
#include "tier/export_file.h"
#include "tier/record.h"
#include "tier/tiers.h"

namespace coppice::tier {
namespace {

constexpr std::uint64_t kBatchBytes = std::uint64_t{32} << 20;  // of payloads, per transaction

// A text of the file's for a terminal, which nothing in it may command.
std::string printable(std::string_view text) {
  std::string shown(text.substr(0, 100));
  std::ranges::replace_if(shown, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return shown;
}

// What has to agree between a file and a folder.
struct Contents {
  std::set<std::string> roots;                // in hex
  std::map<std::string, std::string> models;  // by root, where a record says it
  TokenPos full_tokens = 0, tokens_max = 0;
  std::uint64_t record_bytes_max = 0;

  void add_block(const Block& block, std::uint64_t record_bytes) {
    if (block.begin == 0) roots.insert(hex(block.parent));
    tokens_max = std::max(tokens_max, static_cast<TokenPos>(block.tokens.size()));
    record_bytes_max = std::max(record_bytes_max, record_bytes);
  }
  void add_record(const RecordChange& record) {
    if (record.kind == kRootRecordKind && record.value) models[record.key] = *record.value;
  }
  // Names of the models, or of the roots whose model neither side knows.
  std::set<std::string> names(const Contents& other) const {
    std::set<std::string> names;
    for (const std::string& root : roots) {
      const Contents& knows = models.contains(root) ? *this : other;
      const auto model = knows.models.find(root);
      names.insert(model == knows.models.end() ? "root " + root.substr(0, 16) : printable(model->second));
    }
    return names;
  }
};

// The first reading: an error here leaves the folder untouched.
Result<Contents> contents_of_file(FileSystem& files, const std::string& path, const OnProgress& progress) {
  auto reader = ExportReader::open(files, path);
  if (!reader) return std::unexpected(reader.error());
  Contents contents;
  contents.full_tokens = (*reader)->full_tokens();
  while (true) {
    auto entry = (*reader)->next();
    if (!entry) return std::unexpected(entry.error());
    if (std::holds_alternative<ExportEnd>(*entry)) return contents;
    if (const auto* exported = std::get_if<ExportedBlock>(&*entry)) {
      const Block& block = exported->block;
      contents.add_block(block, record_size(block.tokens.size(), block.state->size()));
    } else {
      contents.add_record(std::get<RecordChange>(*entry));
    }
    progress((*reader)->at(), 2 * (*reader)->bytes());
  }
}

// Nothing if there is no folder, or nothing in it.
Contents contents_of_folder(const std::shared_ptr<FileSystem>& files, const std::string& dir) {
  Contents contents;
  const auto reader = CacheReader::open(files, dir);
  // Whatever else is the matter with it, taking the folder says; a damaged index is begun anew.
  if (!reader) return contents;
  for (const CachedBlock& block : reader->blocks()) {
    if (block.problem.empty()) contents.add_block(block.row.block, block.row.record_bytes);
  }
  for (const RecordChange& record : reader->records()) contents.add_record(record);
  contents.full_tokens = reader->full_tokens();
  return contents;
}

// The tokens of a full block, if both agree on them.
Result<TokenPos> check_fit(const Contents& file, const Contents& folder, bool mix) {
  const TokenPos full = folder.full_tokens != 0 ? folder.full_tokens : file.full_tokens;
  const TokenPos longest = std::max(file.tokens_max, folder.tokens_max);
  if ((file.full_tokens != 0 && file.full_tokens != full) || (full != 0 && longest > full)) {
    return invalid(fmt::format("the file's blocks are of {} tokens, the folder's of {}: they cannot be in one folder",
                               file.full_tokens != 0 ? file.full_tokens : file.tokens_max,
                               folder.full_tokens != 0 ? folder.full_tokens : folder.tokens_max));
  }
  const auto theirs = file.names(folder), ours = folder.names(file);
  const bool common = std::ranges::any_of(theirs, [&](const std::string& name) { return ours.contains(name); });
  if (!mix && !common && !theirs.empty() && !ours.empty()) {
    return invalid(
        fmt::format("the file's blocks are of {}, the folder's of {}: a server that uses the one does not find the "
                    "other (--mix imports them all the same)",
                    fmt::join(theirs, ", "), fmt::join(ours, ", ")));
  }
  return full != 0 ? full : std::max<TokenPos>(longest, 1);
}

// Takes entries in, some blocks at a time.
class Intake {
 public:
  explicit Intake(CacheEditor& editor) : editor_(editor) {
    for (const RecordChange& record : editor.records()) {
      record_bytes_ += record.kind.size() + record.key.size() + record.value->size();
      known_.emplace(record.kind, record.key);
    }
  }
  Result<void> take(ExportedBlock exported) {
    bytes_ += exported.block.state->size();
    uses_.push_back(exported.use);
    blocks_.push_back(std::move(exported.block));
    return bytes_ < kBatchBytes ? Result<void>{} : write();
  }
  Result<void> take(RecordChange record) {
    if (!known_.emplace(record.kind, record.key).second) {
      ++imported_.known_records;
      return {};
    }
    record_bytes_ += record.kind.size() + record.key.size() + record.value->size();
    if (record_bytes_ > Tiers::kRecordBytesMax) {
      ++imported_.refused_records;
      return {};
    }
    ++imported_.records;
    return editor_.change_records(std::span(&record, 1));
  }
  Result<void> write() {
    const auto added = editor_.add(blocks_, uses_);
    if (!added) return std::unexpected(added.error());
    imported_.blocks.blocks += added->blocks;
    imported_.blocks.bytes += added->bytes;
    imported_.blocks.known += added->known;
    imported_.blocks.misfit += added->misfit;
    blocks_.clear();
    uses_.clear();
    bytes_ = 0;
    return {};
  }
  const Imported& imported() const { return imported_; }

 private:
  CacheEditor& editor_;
  Imported imported_;
  std::vector<Block> blocks_;
  std::vector<BlockUse> uses_;
  std::uint64_t bytes_ = 0, record_bytes_ = 0;
  std::set<std::pair<std::string, std::string>> known_;
};

}  // namespace

Result<Imported> import_file(const std::shared_ptr<FileSystem>& files, const std::string& path, const std::string& dir,
                             bool mix, const OnProgress& progress) {
  const auto file = contents_of_file(*files, path, progress);
  if (!file) return std::unexpected(file.error());
  const Contents folder = contents_of_folder(files, dir);
  const auto block_tokens = check_fit(*file, folder, mix);
  if (!block_tokens) return std::unexpected(block_tokens.error());
  auto editor = CacheEditor::open(files, dir, *block_tokens, std::max(file->record_bytes_max, folder.record_bytes_max));
  if (!editor) return std::unexpected(editor.error());
  auto reader = ExportReader::open(*files, path);
  if (!reader) return std::unexpected(reader.error());
  Intake intake(*editor);
  while (true) {
    auto entry = (*reader)->next();
    if (!entry) return std::unexpected(entry.error());  // it has changed since it was checked
    if (std::holds_alternative<ExportEnd>(*entry)) break;
    auto taken = std::holds_alternative<ExportedBlock>(*entry) ? intake.take(std::get<ExportedBlock>(std::move(*entry)))
                                                               : intake.take(std::get<RecordChange>(std::move(*entry)));
    if (!taken) return std::unexpected(taken.error());
    progress((*reader)->bytes() + (*reader)->at(), 2 * (*reader)->bytes());
  }
  if (auto written = intake.write(); !written) return std::unexpected(written.error());
  return intake.imported();
}

}  // namespace coppice::tier
