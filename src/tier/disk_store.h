// The disk tier's files: append-only segments of many blocks, and an index of them (docs/tiers.md has the format).
//
//   coppice-cache     marks the folder as ours and says the format's version
//   lock              is locked while a server has the folder
//   secret            32 random bytes
//   index.sqlite      where each block is, and the records
//   00000012.open     the segment under writing; 00000011.seg: sealed ones
//
// Order of a write: the bytes are synced before the index says where they are. So what the index says was complete
// once, and whatever else is found after a crash is dead bytes; every read checks the record all the same. Owner:
// DiskWorker. Threading: none of its own; every call may block on the disk. Invariants:
//   1. a block in the index goes on from a root or from a block in the index
//   2. live bytes of a segment == the sum of its blocks' records
//   3. the segments take at most bytes_max, if their owner keeps the live bytes within live_bytes_max
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tier/block.h"
#include "tier/disk_index.h"
#include "tier/file_system.h"
#include "tier/segment_file.h"
#include "tier/tiers.h"

namespace coppice::tier {

// A block as it was found on disk; `block.state` is null.
struct StoredBlock {
  Block block;
  std::uint64_t payload_bytes = 0, record_bytes = 0;
  BlockUse use;
};

struct DiskSpace {
  std::uint64_t segment_bytes = 0;  // of all segments
  std::uint64_t written_bytes = 0;  // since the start
  std::uint64_t read_bytes = 0;
};

// What the budget of bytes leaves for blocks: see docs/tiers.md, "Space".
struct DiskBudget {
  std::uint64_t segment_bytes = 0;  // at which a segment is sealed
  std::uint64_t live_bytes_max = 0;
  std::uint64_t record_bytes_max = 0;
};
DiskBudget disk_budget(const DiskOptions& options);

class DiskStore {
 public:
  struct Opened {
    std::unique_ptr<DiskStore> store;
    std::vector<StoredBlock> blocks;  // parents first
    std::vector<RecordChange> records;
    std::string secret;
  };
  // Errors as of Tiers::open.
  static Result<Opened> open(const DiskOptions& options, TokenPos block_tokens);
  ~DiskStore();  // seals the open segment
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  struct Write {
    const Block* block = nullptr;
    BlockUse use;
  };
  // All of them are on disk when it returns, or none of them is known. A block whose parent is not known is left
  // out: `left_out` has their places in `writes`.
  Result<void> write(std::span<const Write> writes, std::vector<std::size_t>& left_out);
  // Errors: not_found: unknown; internal: unreadable or bad.
  Result<Payload> read(const BlockId& id);
  Result<void> erase(std::span<const BlockId> ids);  // at once for readers, whatever the index says; retried with it
  Result<void> set_uses(std::span<const BlockUse> uses);
  Result<void> change_records(std::span<const RecordChange> changes);

  // Copies live blocks out of the emptiest segment, a bounded piece at a time. REQUIRES of compact_piece(): one is due.
  bool compaction_due(double live_share_max = 0.5) const;
  Result<void> compact_piece();
  std::vector<BlockId> take_found_bad() { return std::exchange(found_bad_, {}); }  // by compaction; they are gone

  const DiskSpace& space() const { return space_; }
  bool contains(const BlockId& id) const { return places_.contains(id); }
  void check_invariants() const;

 private:
  using Place = RecordPlace;
  struct Segment {
    std::uint64_t bytes = 0, live_bytes = 0;
    bool named_open = false;  // NUMBER.open rather than NUMBER.seg
    std::unordered_set<BlockId, BlockIdHash> blocks;
  };

  DiskStore(const DiskOptions& options, std::shared_ptr<FileSystem> files);
  Result<void> list_segments();
  Result<std::vector<StoredBlock>> load_blocks(TokenPos block_tokens);
  bool plausible(const IndexRow& row, TokenPos block_tokens) const;
  void tidy_segments();

  std::string segment_path(std::uint64_t number, bool named_open) const;
  Result<void> append(const Block& block, Place& place);
  Result<void> open_segment();
  Result<void> sync();
  Result<void> seal();  // the open segment; nothing is appended to it any more, even if that fails
  Result<void> commit(IndexChanges& changes);
  void abandon();  // the open segment after an error: nothing is appended to it any more
  void settle(const BlockId& id, const Place& place);
  void forget(const BlockId& id);
  void remove_dead_segments();
  Result<void> make_space(std::uint64_t bytes);
  std::uint64_t emptiest() const;  // of those not open, the one with the smallest live share; 0: none
  Result<Block> read_record(const BlockId& id, const Place& place);
  Result<void> compact(std::uint64_t number, std::uint64_t bytes_max);

  DiskOptions options_;
  DiskBudget budget_;
  std::shared_ptr<FileSystem> files_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<DiskIndex> index_;
  std::unordered_map<BlockId, Place, BlockIdHash> places_;
  std::map<std::uint64_t, Segment> segments_;
  std::unique_ptr<AppendFile> file_;  // of the open segment, if there is one
  std::uint64_t open_number_ = 0;
  std::uint64_t next_number_ = 1;
  bool folder_dirty_ = false;       // a name in the folder is not synced
  std::vector<BlockId> unerased_;   // gone, but the index does not know yet
  std::vector<BlockId> found_bad_;  // by compaction, not given out yet
  DiskSpace space_;
};

}  // namespace coppice::tier
