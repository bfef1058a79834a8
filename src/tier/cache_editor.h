// Changes a cache folder that no server uses: removes blocks and takes in those of another folder. It holds the
// folder's lock as a server would, and writes through the same store, in the same order; a crash is the same as a
// server's. Owner: whoever asks. Threading: one thread; calls block on the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "tier/disk_store.h"
#include "tier/file_system.h"

namespace coppice::tier {

// How far it has come, in bytes or whatever the caller counts in.
using OnProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct PruneLimits {
  std::optional<std::uint64_t> used_since_us;  // what was used last before this time goes
  std::optional<std::uint64_t> keep_bytes;     // of records; what was used longest ago goes first
};

struct Removed {
  std::uint64_t blocks = 0, bytes = 0;  // bytes: of their records
};

class CacheEditor {
 public:
  // Makes the folder if it is not there. `block_tokens`: of a full block; rows that contradict it are dropped, as at a
  // server's start, and a damaged index is begun anew. Errors: unavailable: a server has the folder; as of Tiers::open.
  static Result<CacheEditor> open(std::shared_ptr<FileSystem> files, const std::string& dir, TokenPos block_tokens,
                                  std::uint64_t record_bytes_max);

  // A block goes only with all that goes on from it, so from the ends of chains on.
  Result<Removed> prune(const PruneLimits& limits);
  Result<Removed> remove(std::span<const BlockId> ids);  // with all that goes on from them
  // Gives the dead bytes back, but for a tenth at most of each segment. Blocks that turn out to be bad go: counted.
  Result<Removed> compact(const OnProgress& progress);

  // On disk when it returns. A block that is known counts as there. REQUIRES: parents first, and blocks that are what
  // their names say.
  struct Added {
    std::uint64_t blocks = 0, bytes = 0;
    std::uint64_t known = 0;   // were there already
    std::uint64_t misfit = 0;  // do not go on from what is there
  };
  Result<Added> add(std::span<const Block> blocks, std::span<const BlockUse> uses);
  const std::vector<RecordChange>& records() const { return records_; }
  Result<void> change_records(std::span<const RecordChange> changes);

  std::size_t size() const { return ends_.size(); }  // blocks
  std::uint64_t segment_bytes() const { return store_->space().segment_bytes; }

 private:
  CacheEditor() = default;
  std::vector<BlockId> with_descendants(std::span<const BlockId> ids) const;
  Result<Removed> erase(const std::vector<BlockId>& ids);

  std::unique_ptr<DiskStore> store_;
  std::vector<StoredBlock> blocks_;  // that the folder had, parents first; removed ones are not in ends_
  std::vector<RecordChange> records_;
  TokenPos block_tokens_ = 0;
  std::unordered_map<BlockId, TokenPos, BlockIdHash>
      ends_;  // of all that are there now: position behind the last token
};

}  // namespace coppice::tier
