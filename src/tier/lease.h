// The right to blocks of the tiers: while a lease lives, they stay where they are known to be, and stay in host memory
// once they are there. A request that is to restore them holds one from the moment they are found.
//
// Leases move and release themselves. A block that fails to be read is taken away from under its leases (Tiers::ready
// says so); that leaves nothing to release.
// Owner: the request. Threading: the engine thread. The tree must outlive its leases.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tier/block_tree.h"

namespace coppice::tier {

class Lease {
 public:
  struct Held {
    BlockId id{};
    std::uint64_t serial = 0;
  };

  Lease() = default;  // a right to nothing
  // Up to the first block that is not there.
  Lease(BlockTree& tree, std::span<const BlockId> blocks) : tree_(&tree) {
    for (const BlockId& id : blocks) {
      Entry* entry = tree.get(id);
      if (entry == nullptr) break;
      tree.pin(*entry);
      held_.push_back({id, entry->serial});
    }
  }
  Lease(Lease&& from) noexcept : tree_(std::exchange(from.tree_, nullptr)), held_(std::exchange(from.held_, {})) {}
  Lease& operator=(Lease&& from) noexcept {
    if (this == &from) return *this;
    release();
    tree_ = std::exchange(from.tree_, nullptr);
    held_ = std::exchange(from.held_, {});
    return *this;
  }
  ~Lease() { release(); }

  explicit operator bool() const { return !held_.empty(); }
  std::span<const Held> blocks() const { return held_; }
  void release() {
    if (tree_ == nullptr) return;
    // From the end of the chain, so that each block is unpinned once and not with each one behind it.
    for (auto held = held_.rbegin(); held != held_.rend(); ++held) {
      if (Entry* entry = tree_->get(held->id, held->serial)) tree_->unpin(*entry);
    }
    held_.clear();
    tree_ = nullptr;
  }

 private:
  BlockTree* tree_ = nullptr;
  std::vector<Held> held_;
};

}  // namespace coppice::tier
