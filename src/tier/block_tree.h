// The index of all blocks of the host and the disk tier, and of those that stand in cells: which chain of blocks a
// prompt begins with, where each block is, what each tier holds, and which block a tier can give up next. It moves no
// bytes: tiers.h does.
//
// A block's states:
//
//   host     disk      means                                       leaves by
//   held     none      in memory only                              want, drop_host (gone), begin_write
//   held     wanted    in memory, to be written                    begin_write, drop_host (gone)
//   held     writing   with the disk's thread                      set_disk(held or wanted)
//   held     held      in both                                     drop_host, drop_disk
//   none     held      on disk only                                begin_read, adopt, drop_disk (gone)
//   reading  held      host bytes are reserved, the read is going  end_read
//   none     none      in cells only                               adopt, leave_cells (gone)
//
// Beside that, a block of cells is *in cells* while sequences hold all of its tokens (enter_cells, leave_cells). Such a
// block needs no bytes of a tier: it can be saved as long as it stands there. So its host bytes are the first to be
// given up, whatever goes on from it, and host memory holds what the cells do not.
//
// A block is *pinned* while it is leased, written or read: neither tier gives it up. A block in host memory is *stuck*
// there while it is pinned or one that goes on from it is stuck, unless it is in cells and nobody wants it on disk. All
// else in host memory can be given up, from the ends of the chains inwards, so room(bytes) is exact.
//
// Owner: Tiers. Threading: the engine thread. Entries keep their address until they are removed.
// Cost: find() compares the prompt once, with a binary search among the blocks that go on from the same one; a change
// of state costs O(log n), and O(depth) when a chain becomes stuck or free; a victim is chosen among the 32 oldest of
// each kind. Invariants (check_invariants):
//   1. a block is held by some tier or in cells, and so is the one it goes on from, which is full, of cells, and ends
//   where it begins; what goes on from a block is in the cells of no more sequences than the block itself
//   2. what is to be written goes on from what is, or is on disk; what is on disk goes on from what is on disk
//   3. bytes and counts of each tier are the sums over its blocks; host bytes <= the limit
//   4. the lists of candidates hold exactly the blocks that could be given up next
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "tier/block.h"
#include "tier/eviction.h"

namespace coppice::tier {

enum class HostState : std::uint8_t { none, reading, held };
enum class DiskState : std::uint8_t { none, wanted, writing, held };

struct Entry;

// Orders blocks that go on from the same one by their tokens, so that those with the longest beginning in common with a
// prompt stand beside it; of two with the same tokens, the checkpoint comes last.
struct ByTokens {
  using is_transparent = void;
  bool operator()(const Entry* a, const Entry* b) const;
  bool operator()(const Entry* a, std::span<const Token> b) const;
  bool operator()(std::span<const Token> a, const Entry* b) const;
};
using Children = std::set<Entry*, ByTokens>;

struct Entry {
  BlockId id{};
  std::uint64_t serial = 0;  // of this stay in the tree: a block that comes back is another entry
  Entry* parent = nullptr;   // null: goes on from a root
  BlockId parent_id{};
  TokenPos begin = 0;
  Tokens tokens;
  TokenPos saves = 0;               // tokens that would be computed without it: all since the last checkpoint, for one
  std::uint64_t payload_bytes = 0;  // 0: it was in cells only so far
  std::uint64_t record_bytes = 0;   // that it takes on disk
  std::int32_t in_cells = 0;        // sequences whose cells hold all of it
  Payload payload;                  // null unless host == held
  HostState host = HostState::none;
  DiskState disk = DiskState::none;
  std::int32_t leases = 0;
  TimePoint last_use;
  std::uint32_t uses = 0;
  bool held_back = false;  // the hourly limit on writing has held it back: counted once

  Children children;
  std::int32_t host_children = 0;  // with host bytes
  std::int32_t disk_children = 0;  // on disk, or to be
  std::int32_t stuck_children = 0;

  TokenPos end() const { return begin + static_cast<TokenPos>(tokens.size()); }
  bool is_checkpoint() const { return kind_of(id) == BlockKind::checkpoint; }
  bool pinned() const { return leases > 0 || host == HostState::reading || disk == DiskState::writing; }
  bool saved() const { return host != HostState::none || disk == DiskState::held; }
  // Its host bytes can be given up though others go on from it.
  bool yields() const { return in_cells > 0 && host == HostState::held && !pinned() && disk != DiskState::wanted; }
  bool stuck() const { return host != HostState::none && !yields() && (pinned() || stuck_children > 0); }
};

// The longest known beginning of a prompt.
struct Found {
  std::vector<BlockId> blocks;  // from the root on
  TokenPos tokens = 0;          // that they cover of the prompt
  TokenPos tokens_in_host = 0;  // the leading part that is in host memory or in cells now
  TokenPos last_usable = 0;     // tokens of the last block that agree with the prompt; 0 if there are no blocks
};

struct TreeTotals {
  std::uint64_t host_bytes = 0;   // held and reserved
  std::uint64_t stuck_bytes = 0;  // of those
  std::uint64_t disk_bytes = 0;   // records held and being written
  std::uint64_t host_blocks = 0, disk_blocks = 0;
  friend bool operator==(const TreeTotals&, const TreeTotals&) = default;
};

class BlockTree {
 public:
  BlockTree(std::uint64_t host_bytes_max, TokenPos block_tokens);
  BlockTree(const BlockTree&) = delete;  // leases point here
  BlockTree& operator=(const BlockTree&) = delete;

  // `last`: the kind of block that a chain has to end in to be of use. Of cells, a part of the last block will do.
  Found find(const BlockId& root, std::span<const Token> prompt, BlockKind last) const;
  Entry* get(const BlockId& id);
  const Entry* get(const BlockId& id) const;
  Entry* get(const BlockId& id, std::uint64_t serial);  // null as well when it has left and come back

  // The block that makes this one superfluous: it begins with all of its cells, or it is this very one. Null if there
  // is none.
  Entry* covering(const Block& block);
  // Shorter blocks that go on from the same one and that `entry` begins with. None for a checkpoint: it is of use at
  // its own end only.
  std::vector<Entry*> covered_by(const Entry& entry);
  // The checkpoints on the way of these tokens, the shortest first.
  std::vector<Entry*> checkpoints(const BlockId& root, std::span<const Token> tokens);

  // Whether a block may stand here: its parent is there, full, and ends at its begin.
  bool fits(const Block& block) const;
  // REQUIRES: fits(block), unknown, room(its bytes) without a victim.
  Entry& add(Block block, std::uint64_t record_bytes, TimePoint now);
  // A block that only the disk has; `block.state` is not looked at. REQUIRES: fits(block), unknown.
  Entry& add_on_disk(Block block, std::uint64_t payload_bytes, std::uint64_t record_bytes, TimePoint last_use,
                     std::uint32_t uses);
  // A block that no tier has, in the cells of one sequence; `block.state` is not looked at. REQUIRES: fits(block),
  // unknown, full, of cells.
  Entry& add_in_cells(Block block);
  // Of one more sequence, and of one fewer. What is held nowhere any more is removed by the caller, with all that goes
  // on from it.
  void enter_cells(Entry& entry);
  void leave_cells(Entry& entry);
  // REQUIRES: no block goes on from it.
  void remove(Entry& entry);
  // The block and all that go on from it, ends of chains first.
  std::vector<Entry*> subtree(Entry& entry);

  void touch(Entry& entry, TimePoint now);  // it was used
  void pin(Entry& entry);
  void unpin(Entry& entry);
  void set_disk(Entry& entry, DiskState state);  // REQUIRES: not from held to none with nothing in host; see drop_disk
  void begin_read(Entry& entry);                 // REQUIRES: on disk only, room without a victim
  void end_read(Entry& entry, Payload payload);  // null: the reservation is given back
  // REQUIRES: not in host memory, room without a victim.
  void adopt(Entry& entry, Payload payload, std::uint64_t record_bytes);
  // The bytes in one tier are given up; the entry is removed if it is held nowhere else. REQUIRES: not pinned, and what
  // is removed has no children.
  void drop_host(Entry& entry);
  void drop_disk(Entry& entry);

  // Whether so many bytes can be had in host memory, victims included.
  bool room(std::uint64_t bytes) const { return totals_.stuck_bytes + bytes <= host_bytes_max_; }
  bool fits_now(std::uint64_t bytes) const { return totals_.host_bytes + bytes <= host_bytes_max_; }
  // Those that are in cells as well come first, beginnings before ends: the ends are what cells lose first.
  Entry* host_victim(const BlockEvictionPolicy& policy, TimePoint now) const;
  Entry* disk_victim(const BlockEvictionPolicy& policy, TimePoint now) const;

  const TreeTotals& totals() const { return totals_; }
  TokenPos block_tokens() const { return block_tokens_; }
  std::size_t size() const { return entries_.size(); }
  void for_each(const std::function<void(const Entry&)>& visit) const;
  void check_invariants() const;  // asserts; linear in everything

 private:
  struct Older {
    bool operator()(const Entry* a, const Entry* b) const {
      return a->last_use != b->last_use ? a->last_use < b->last_use : a->serial < b->serial;
    }
  };
  using Candidates = std::set<Entry*, Older>;
  struct Nearer {
    bool operator()(const Entry* a, const Entry* b) const {
      return a->begin != b->begin ? a->begin < b->begin : a->serial < b->serial;
    }
  };
  struct Share;

  const Children* children_of(const BlockId& id) const;
  bool full(const Entry& entry) const { return static_cast<TokenPos>(entry.tokens.size()) == block_tokens_; }
  Entry& insert(Block block);
  TokenPos saved_by(const Entry& entry) const;
  Found find_cells(const BlockId& root, std::span<const Token> prompt) const;
  Found find_checkpoint(const BlockId& root, std::span<const Token> prompt) const;
  template <class F>
  void walk(const BlockId& root, std::span<const Token> tokens, F&& visit) const;
  static Share share_of(const Entry& entry);
  template <class F>
  void change(Entry& entry, F&& f);
  static bool host_candidate(const Entry& entry);
  static bool disk_candidate(const Entry& entry);
  Candidates& host_list(const Entry& entry) { return entry.disk == DiskState::held ? host_backed_ : host_alone_; }
  static Entry* least_worth(std::initializer_list<const Candidates*> lists, const BlockEvictionPolicy& policy,
                            TimePoint now, bool for_host);

  std::uint64_t host_bytes_max_;
  TokenPos block_tokens_;
  std::uint64_t next_serial_ = 1;
  std::unordered_map<BlockId, Entry, BlockIdHash> entries_;
  std::unordered_map<BlockId, Children, BlockIdHash> roots_;  // without empty ones
  std::set<Entry*, Nearer> yielding_;                         // in host and in cells
  Candidates host_backed_;                                    // in host and on disk
  Candidates host_alone_;                                     // in host only
  Candidates disk_;
  TreeTotals totals_;
};

}  // namespace coppice::tier
