// A cache folder from outside, to read only: for people, and for copies of it. A server may be using the folder
// meanwhile: SQLite's readers stop nobody, no lock is taken, and a block that compaction moves is looked up again.
// Blocks that the server gives up meanwhile are `gone`, which is no fault.
// Owner: whoever asks. Threading: one thread; calls block on the disk. Invariant: parents come before what goes on
// from them; `blocks()` is the index at one moment, that of open().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tier/disk_index.h"
#include "tier/file_system.h"
#include "tier/segment_file.h"

namespace coppice::tier {

inline constexpr const char* kGoneCode = "gone";  // Error::code of a block that the index no longer has

// The kind of the text records that say what a root stands for: key: hex(root), value: the fingerprint. Only for
// people and for import's refusal; nothing is found by it.
inline constexpr const char* kRootRecordKind = "root";

struct SegmentSpace {
  std::uint64_t bytes = 0, live_bytes = 0;
  bool named_open = false;
};

struct CachedBlock {
  static constexpr std::size_t kNone = ~std::size_t{0};
  IndexRow row;
  std::size_t parent = kNone;  // its place in blocks(); none: a root's
  std::string problem;         // why no server would use this row; empty: nothing is known to be wrong
};

class CacheReader {
 public:
  // Errors: not_found: no cache folder of ours, or no index in it yet; code "corrupt": SQLite cannot read the index.
  static Result<CacheReader> open(std::shared_ptr<FileSystem> files, const std::string& dir);

  const std::vector<CachedBlock>& blocks() const { return blocks_; }
  const std::vector<RecordChange>& records() const { return records_; }
  const std::map<std::uint64_t, SegmentSpace>& segments() const { return segments_; }
  std::string model_of(const BlockId& root) const;  // the root record's value, or empty
  BlockId root_of(const CachedBlock& block) const;

  // Of the blocks that others go on from, how many tokens; 0: there are none.
  TokenPos full_tokens() const { return full_tokens_; }
  TokenPos tokens_max() const { return tokens_max_; }  // of the longest block

  // Reads and checks it. Errors: kGoneCode; others say what is wrong with it.
  Result<Block> read(const CachedBlock& block);
  Result<void> check_index() { return index_->check(); }

 private:
  CacheReader(std::shared_ptr<FileSystem> files, std::string dir) : files_(std::move(files)), dir_(std::move(dir)) {}
  Result<void> load();
  void find_parents();
  Result<void> list_segments();
  Result<Block> read_at(const IndexRow& row);

  std::shared_ptr<FileSystem> files_;
  std::string dir_;
  std::unique_ptr<DiskIndex> index_;
  std::vector<CachedBlock> blocks_;
  std::vector<RecordChange> records_;
  std::map<std::uint64_t, SegmentSpace> segments_;
  TokenPos full_tokens_ = 0, tokens_max_ = 0;
};

}  // namespace coppice::tier
