// The host and the disk tier as the scheduler sees them (spec B18, B20): blocks of KV under one byte budget each.
// docs/tiers.md has the format on disk, the order of writes and every limit.
//
//   put ----> host memory ----> (durable) write behind ----> segments + index on disk
//                  ^                                                 |
//                  `-------------------- prefetch -------------------'
//
// Nothing here waits for a disk: one thread of its own does all that is slow, and what it has done takes effect in
// poll(). Without a disk, or while it fails, blocks live in host memory alone.
// Host bytes are reserved before they are used. A tier that is full gives up the block worth least (eviction.h) that
// nobody has a lease on. Before all others, host memory gives up what the cells have too: it can be saved again as long
// as it stands there, and so cells and host memory together hold as much as both have room for.
// Owner: the engine. Threading: the engine thread alone; `wake` is called on the disk's thread. Must outlive its
// leases.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "tier/block.h"
#include "tier/block_tree.h"
#include "tier/eviction.h"
#include "tier/file_system.h"
#include "tier/lease.h"

namespace coppice::obs {
class Metrics;
}

namespace coppice::tier {

class WriteBehind;

struct DiskOptions {
  std::string dir;
  std::uint64_t bytes_max = 0;           // of segments
  std::uint64_t bytes_per_hour_max = 0;  // written; 0: no limit
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  std::uint64_t queue_bytes_max = std::uint64_t{256} << 20;  // with the disk's thread at a time
  std::shared_ptr<FileSystem> files;                         // null: the system's
  std::function<std::uint64_t()> wall_us;                    // since 1970, for the times of uses; null: the system's
  std::uint64_t now_us() const;                              // what that says
  bool check_index = false;  // an index that SQLite finds anything wrong with is begun anew, not only an unreadable one
  // How long the end waits for the disk's thread, and who is told that it hangs: what it uses is left behind then, and
  // the process should end at once (_exit).
  Duration end_wait = std::chrono::seconds(10);
  std::function<void()> on_hung;
  bool own_thread = true;  // false: poll() does the disk's work itself, so that a simulation can be replayed
};

struct Options {
  std::uint64_t host_bytes_max = 0;  // 0: nothing is kept
  std::optional<DiskOptions> disk;
  TokenPos block_tokens = 256;
  std::shared_ptr<const BlockEvictionPolicy> eviction;  // null: RecomputeOrReadPolicy
  // There is something to poll(). Called on the disk's thread, until the destructor returns; must not call back.
  std::function<void()> wake;
};

enum class Ready : std::uint8_t {
  yes,      // every block's payload is in host memory
  waiting,  // reads are going on
  lost,     // no reads are going on, and one is not in memory: its read failed, there was no room, or nobody asked
};

struct FlushResult {
  std::uint64_t blocks = 0, bytes = 0;  // on disk now, of those that were to be written when the flush began
  std::uint64_t failed = 0;             // the others: the disk fails, or the limits on it do not let them through
};

struct TierStats {
  std::uint64_t bytes = 0, bytes_max = 0, blocks = 0;
  std::uint64_t evictions = 0;  // blocks given up for room
  std::uint64_t hits = 0;       // blocks leased that were here (for the disk: and not in memory)
};

struct DiskStats {
  bool configured = false;
  bool degraded = false;
  std::string reason;                // why, for a person
  std::uint64_t segment_bytes = 0;   // of all files, dead bytes included
  std::uint64_t written_bytes = 0;   // since the start, compaction included
  std::uint64_t read_bytes = 0;      // since the start
  std::uint64_t unwritten = 0;       // blocks that are to be written
  std::uint64_t queue_bytes = 0;     // with the disk's thread
  std::uint64_t held_back = 0;       // blocks that the hourly limit has delayed
  std::uint64_t write_failures = 0;  // blocks whose write failed; tried again
  std::uint64_t given_up = 0;        // blocks that left host memory before they could be written
};

// The longest that the engine's thread was busy, without a break, with copying to or from host memory. Counted by who
// copies, not by Tiers.
struct Stalls {
  Duration save_worst{}, restore_worst{};
};

struct Stats {
  TierStats host, disk;
  DiskStats disk_state;
  std::uint64_t quarantined = 0;  // blocks that were bad, without those that went with them
  std::uint64_t refused = 0;      // puts without room
  Stalls stalls;
};

class Tiers {
 public:
  // Errors: unavailable: another server has the folder; invalid_request: it is not a folder of Coppice's, of another
  // version, or cannot be used.
  static Result<std::unique_ptr<Tiers>> open(const Options& options, const Clock& clock, obs::Metrics& metrics);
  ~Tiers();  // lets the disk's thread write what it has been given, for DiskOptions::end_wait; flush first
  Tiers(const Tiers&) = delete;
  Tiers& operator=(const Tiers&) = delete;

  // The longest known chain that this prompt begins with, below `root`, ending in a block of that kind. Give it as much
  // of the prompt as may be reused. REQUIRES: below one root, blocks of cells that are not full, or checkpoints, but
  // not both.
  Found find(const BlockId& root, std::span<const Token> prompt, BlockKind last = BlockKind::cells) const {
    return tree_.find(root, prompt, last);
  }
  // Whether a tier has it, and not cells alone.
  bool contains(const BlockId& id) const {
    const Entry* entry = tree_.get(id);
    return entry != nullptr && entry->saved();
  }
  TokenPos length(const BlockId& id) const;                              // in tokens; 0 for an unknown one
  const Entry* block(const BlockId& id) const { return tree_.get(id); }  // null for an unknown one
  TokenPos block_tokens() const { return tree_.block_tokens(); }

  // Takes the block into host memory, at the cost of others (or of none: Room::as_is). False, and nothing has changed,
  // if there is no room or the block that it goes on from is not known (or short). A block that is known only gets its
  // wish and counts as used; one that a longer known block begins with is not stored beside it. durable: it is to
  // survive a restart, with all that it goes on from. REQUIRES: names(block.id, block.parent, block.tokens), a state,
  // at most block_tokens tokens.
  enum class Room : std::uint8_t { make, as_is };
  bool put(Block block, bool durable, Room room = Room::make);
  // With all that it goes on from; nothing for an unknown one, or behind one that is in cells alone.
  void want_durable(const BlockId& id);

  bool has_room() const;  // for a block more, as large as they were on average, at the cost of none

  // A sequence's cells hold this full block, and all that it goes on from. A serial number to give to leave_cells();
  // nothing if the block that it goes on from is not known. `block.state` is not looked at.
  std::optional<std::uint64_t> enter_cells(Block block);
  void enter_cells(const BlockId& id);  // of one more sequence. REQUIRES: known, and in cells already
  // They do not any more. What was held nowhere else is gone then, with all that goes on from it. Does nothing if that
  // block has gone meanwhile.
  void leave_cells(const BlockId& id, std::uint64_t serial);

  // Thins out the checkpoints on the way of `tokens` (B21): from the last one backwards, the distance between two is at
  // least their distance from the last, so n tokens have some log2(n) of them. Those in use, and those that were used
  // more than once, as a beginning that several conversations share, stay. How many went.
  std::size_t thin_checkpoints(const BlockId& root, std::span<const Token> tokens);

  // Leases up to the first block that is not there. The blocks count as used.
  Lease lease(std::span<const BlockId> blocks);
  // Starts to read what is not in host memory, from block `first` on and as far as there is room. Where there is none,
  // blocks that the lease has let go give up theirs, if they are on disk.
  void prefetch(const Lease& lease, std::size_t first = 0);
  Ready ready(const Lease& lease, std::size_t first = 0) const;  // of the blocks from `first` on
  Payload payload(const BlockId& id) const;                      // null when not in host memory
  // It could not be restored: it goes, with all that goes on from it, from disk too.
  void quarantine(const BlockId& id);

  // Takes in what the disk's thread has done, and gives it more to do. Whether anything has changed.
  bool poll();

  // flush_result() is there once all that is to be written now is on disk or has failed, and then once only.
  std::uint64_t flush_begin();
  std::optional<FlushResult> flush_result(std::uint64_t ticket);

  // Small named texts that survive a restart: sessions, pools. Kept in memory, written behind; on disk with a flush.
  // False if all of them would take more than kRecordBytesMax.
  static constexpr std::uint64_t kRecordBytesMax = std::uint64_t{64} << 20;
  bool put_record(std::string_view kind, std::string_view key, std::string value);
  void erase_record(std::string_view kind, std::string_view key);
  const std::map<std::string, std::string, std::less<>>& records(std::string_view kind) const;

  bool survives_restart() const { return disk_ != nullptr; }
  std::uint64_t wall_us() const;  // since 1970

  // 32 random bytes that stay with the folder; without a disk, with the process. What keys of namespaces are made with.
  const std::string& secret() const { return secret_; }

  Stats stats() const;
  void check_invariants() const { tree_.check_invariants(); }

 private:
  Tiers(const Options& options, const Clock& clock, obs::Metrics& metrics);
  bool make_room(std::uint64_t bytes, Entry* keep);
  bool make_room_of(const Lease& lease, std::uint64_t bytes);
  bool adopt(Entry& entry, Payload state, std::uint64_t record_bytes, Room room);
  void remove(Entry& entry);
  void drop_covered(Entry& entry);
  void drop_bad(Entry& entry);
  void publish();

  Options options_;
  const Clock& clock_;
  obs::Metrics& metrics_;
  std::shared_ptr<const BlockEvictionPolicy> policy_;
  BlockTree tree_;
  std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>> records_;
  std::uint64_t record_bytes_ = 0;
  std::string secret_;
  Stats counts_;  // what this class counts itself
  std::uint64_t n_given_up_ = 0;
  std::unique_ptr<WriteBehind> disk_;  // null without a disk
};

}  // namespace coppice::tier
