// The right to blocks of the tiers: while a lease lives, they stay where they are known to be, and stay in host memory
// once they are there. A request that is to restore them holds one from the moment they are found.
//
// A chain may be longer than host memory has room for. As its blocks are put back into cells they are let go, from the
// front on, and make room for the ones behind them (Tiers::prefetch).
//
// Leases move and release themselves. A block that fails to be read is taken away from under its leases (Tiers::ready
// says so); that leaves nothing to release.
// Owner: the request. Threading: the engine thread. The tree must outlive its leases.
#pragma once

#include <algorithm>
#include <cstddef>
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
  Lease(Lease&& from) noexcept
      : tree_(std::exchange(from.tree_, nullptr)),
        held_(std::exchange(from.held_, {})),
        n_let_go_(std::exchange(from.n_let_go_, 0)) {}
  Lease& operator=(Lease&& from) noexcept {
    if (this == &from) return *this;
    release();
    tree_ = std::exchange(from.tree_, nullptr);
    held_ = std::exchange(from.held_, {});
    n_let_go_ = std::exchange(from.n_let_go_, 0);
    return *this;
  }
  ~Lease() { release(); }

  explicit operator bool() const { return !held_.empty(); }
  std::span<const Held> blocks() const { return held_; }  // those that were let go too
  std::size_t n_let_go() const { return n_let_go_; }
  // The first `count` blocks are of no more use to the holder.
  void let_go(std::size_t count) {
    for (; n_let_go_ < std::min(count, held_.size()); ++n_let_go_) unpin(held_[n_let_go_]);
  }
  void release() {
    if (tree_ == nullptr) return;
    // From the end of the chain, so that each block is unpinned once and not with each one behind it.
    for (std::size_t i = held_.size(); i > n_let_go_; --i) unpin(held_[i - 1]);
    held_.clear();
    n_let_go_ = 0;
    tree_ = nullptr;
  }

 private:
  void unpin(const Held& held) {
    if (Entry* entry = tree_->get(held.id, held.serial)) tree_->unpin(*entry);
  }

  BlockTree* tree_ = nullptr;
  std::vector<Held> held_;
  std::size_t n_let_go_ = 0;
};

}  // namespace coppice::tier
