// The disk tier's index in SQLite: where each block is, when it was last used, and the named records. What belongs
// together changes in one transaction, which is on disk when apply() returns.
// Owner: DiskStore. Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "tier/block.h"

struct sqlite3;

namespace coppice::tier {

std::uint64_t system_us();  // microseconds since 1970, by the system's clock

struct BlockUse {
  BlockId id{};
  std::uint64_t order = 0;  // microseconds since 1970, about: it always grows, over restarts too
  std::uint32_t uses = 0;
};

struct RecordChange {
  std::string kind, key;
  std::optional<std::string> value;  // none: erased
};

// The kind of the one record that says how much was written in the hour under way; the folder's own affair.
inline constexpr const char* kHourRecordKind = "hour";

struct IndexRow {
  Block block;  // without state
  std::uint64_t segment = 0, offset = 0, record_bytes = 0, payload_bytes = 0;
  BlockUse use;
};

struct IndexMove {
  BlockId id{};
  std::uint64_t segment = 0, offset = 0;
};

struct IndexChanges {
  std::vector<BlockId> erase;  // comes first: a block may be erased and written again
  std::vector<IndexRow> insert;
  std::vector<IndexMove> move;
  std::vector<BlockUse> use;
  std::vector<RecordChange> records;
};

class DiskIndex {
 public:
  // Makes the file if it is not there. An index that SQLite cannot read is put aside (PATH.bad) and begun anew.
  // `check_all`: so is one that SQLite finds anything wrong with. Errors: another format, or no access.
  static Result<std::unique_ptr<DiskIndex>> open(const std::string& path, bool check_all);
  // An index that is there, to read only; a server may be using it, and goes on (WAL). Errors: not_found; "corrupt";
  // another format; no access.
  static Result<std::unique_ptr<DiskIndex>> open_to_read(const std::string& path);
  ~DiskIndex();
  DiskIndex(const DiskIndex&) = delete;
  DiskIndex& operator=(const DiskIndex&) = delete;

  // Ordered by begin, so parents come first. Rows that no block can have are left out.
  Result<std::vector<IndexRow>> rows();
  Result<std::optional<IndexRow>> find(const BlockId& id);
  Result<std::vector<RecordChange>> records();
  Result<void> check();                             // that SQLite finds nothing wrong; reads all of it
  Result<void> apply(const IndexChanges& changes);  // all or nothing

  // It was made by this open(), or by one that did not come to complete(): what it says is not all that there is.
  bool is_new() const { return is_new_; }
  Result<void> complete();

 private:
  explicit DiskIndex(sqlite3* db) : db_(db) {}
  Result<std::uint64_t> format();
  Result<void> prepare();
  Result<void> apply_all(const IndexChanges& changes);

  sqlite3* db_;
  bool is_new_ = false;
};

}  // namespace coppice::tier
