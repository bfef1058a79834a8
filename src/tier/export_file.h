// Blocks and text records of a cache folder as one file, to carry to another machine (docs/tiers.md has the format).
// The file has its length and a checksum at its end, so a part of one is noticed; each block has its own besides.
// Owner: whoever asks. Threading: one thread; calls block on the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "base/error.h"
#include "tier/block.h"
#include "tier/disk_index.h"
#include "tier/file_system.h"

namespace coppice::tier {

inline constexpr std::uint32_t kExportVersion = 1;

struct ExportedBlock {
  Block block;
  BlockUse use;
};
struct ExportEnd {};
using ExportEntry = std::variant<ExportedBlock, RecordChange, ExportEnd>;

class RunningChecksum;  // XXH3-128

class ExportWriter {
 public:
  // Replaces no file: errors if there is one. Written under another name (PATH.part) until finish().
  // `full_tokens`: CacheReader::full_tokens().
  static Result<std::unique_ptr<ExportWriter>> create(FileSystem& files, const std::string& path, TokenPos full_tokens);
  ~ExportWriter();  // without finish(): nothing is left
  ExportWriter(const ExportWriter&) = delete;
  ExportWriter& operator=(const ExportWriter&) = delete;

  Result<void> add(const Block& block, const BlockUse& use);  // parents first. REQUIRES: block.state
  Result<void> add(const RecordChange& record);               // REQUIRES: record.value
  Result<void> finish();                                      // on disk, under its name, when it returns

 private:
  ExportWriter(FileSystem& files, std::string path);
  Result<void> append(std::span<const std::byte> bytes);
  Result<void> append_frame(std::uint32_t kind, std::uint64_t bytes);

  FileSystem& files_;
  const std::string path_, part_path_;
  std::unique_ptr<AppendFile> file_;
  std::unique_ptr<RunningChecksum> checksum_;
  std::uint64_t n_blocks_ = 0, n_records_ = 0;
  bool finished_ = false;
};

class ExportReader {
 public:
  // Errors: it is no such file, or one of another version.
  static Result<std::unique_ptr<ExportReader>> open(FileSystem& files, const std::string& path);
  ~ExportReader();
  ExportReader(const ExportReader&) = delete;
  ExportReader& operator=(const ExportReader&) = delete;

  // Every block has its checksum and its name checked; ExportEnd comes only if the whole file's are right, and nothing
  // may be asked for after it or after an error.
  Result<ExportEntry> next();
  TokenPos full_tokens() const { return full_tokens_; }
  std::uint64_t at() const { return at_; }  // bytes read
  std::uint64_t bytes() const { return bytes_; }

 private:
  ExportReader(FileSystem& files, std::string path, std::uint64_t bytes);
  Result<void> take(std::span<std::byte> to);  // the next bytes; errors if the file ends
  Result<void> take_header();
  Result<ExportEntry> take_block(std::uint64_t bytes);
  Result<ExportEntry> take_record(std::uint64_t bytes);
  Result<ExportEntry> take_end(std::uint64_t bytes);
  std::uint64_t left() const { return bytes_ - at_; }

  FileSystem& files_;
  const std::string path_;
  const std::uint64_t bytes_;
  std::uint64_t at_ = 0;
  std::unique_ptr<RunningChecksum> checksum_;
  TokenPos full_tokens_ = 0;
  std::uint64_t n_blocks_ = 0, n_records_ = 0;
};

}  // namespace coppice::tier
