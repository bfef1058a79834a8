#include "tier/block_tree.h"

#include <algorithm>
#include <cassert>

namespace coppice::tier {

// What an entry adds to the totals and to its parent's counts.
struct BlockTree::Share {
  bool host = false, disk = false, stuck = false, on_disk = false;
  std::uint64_t host_bytes = 0, disk_bytes = 0;
};

BlockTree::Share BlockTree::share_of(const Entry& entry) {
  Share share;
  share.host = entry.host != HostState::none;
  share.disk = entry.disk != DiskState::none;
  share.on_disk = entry.disk == DiskState::writing || entry.disk == DiskState::held;
  share.stuck = entry.stuck();
  share.host_bytes = share.host ? entry.payload_bytes : 0;
  share.disk_bytes = share.on_disk ? entry.record_bytes : 0;
  return share;
}

BlockTree::BlockTree(std::uint64_t host_bytes_max, TokenPos block_tokens)
    : host_bytes_max_(host_bytes_max), block_tokens_(block_tokens) {
  assert(block_tokens >= 1);
}

const Children* BlockTree::children_of(const BlockId& id) const {
  if (const Entry* entry = get(id)) return &entry->children;
  const auto root = roots_.find(id);
  return root == roots_.end() ? nullptr : &root->second;
}

Entry* BlockTree::get(const BlockId& id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

const Entry* BlockTree::get(const BlockId& id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

Entry* BlockTree::get(const BlockId& id, std::uint64_t serial) {
  Entry* entry = get(id);
  return entry != nullptr && entry->serial == serial ? entry : nullptr;
}

bool BlockTree::fits(const Block& block) const {
  const auto n = static_cast<TokenPos>(block.tokens.size());
  if (n < 1 || n > block_tokens_ || block.begin < 0) return false;
  const Entry* parent = get(block.parent);
  if (parent == nullptr) return block.begin == 0;
  return full(*parent) && !parent->is_checkpoint() && parent->end() == block.begin;
}

Entry& BlockTree::insert(Block block) {
  assert(fits(block) && !entries_.contains(block.id));
  Entry& entry = entries_[block.id];
  entry.id = block.id;
  entry.serial = next_serial_++;
  entry.parent = get(block.parent);
  entry.parent_id = block.parent;
  entry.begin = block.begin;
  entry.tokens = std::move(block.tokens);
  entry.saves = saved_by(entry);
  if (entry.parent != nullptr) {
    change(*entry.parent, [&](Entry& parent) { parent.children.insert(&entry); });
  } else {
    roots_[entry.parent_id].insert(&entry);
  }
  return entry;
}

Entry& BlockTree::add(Block block, std::uint64_t record_bytes, TimePoint now) {
  assert(block.state != nullptr && fits_now(block.state->size()));
  Payload payload = std::move(block.state);
  Entry& entry = insert(std::move(block));
  change(entry, [&](Entry& e) {
    e.payload_bytes = payload->size();
    e.record_bytes = record_bytes;
    e.payload = std::move(payload);
    e.host = HostState::held;
    e.last_use = now;
  });
  return entry;
}

Entry& BlockTree::add_on_disk(Block block, std::uint64_t payload_bytes, std::uint64_t record_bytes, TimePoint last_use,
                              std::uint32_t uses) {
  Entry& entry = insert(std::move(block));
  change(entry, [&](Entry& e) {
    e.payload_bytes = payload_bytes;
    e.record_bytes = record_bytes;
    e.disk = DiskState::held;
    e.last_use = last_use;
    e.uses = uses;
  });
  return entry;
}

Entry& BlockTree::add_in_cells(Block block) {
  assert(static_cast<TokenPos>(block.tokens.size()) == block_tokens_ && kind_of(block.id) == BlockKind::cells);
  Entry& entry = insert(std::move(block));
  enter_cells(entry);
  return entry;
}

void BlockTree::enter_cells(Entry& entry) {
  change(entry, [](Entry& e) { ++e.in_cells; });
}

void BlockTree::leave_cells(Entry& entry) {
  assert(entry.in_cells > 0);
  change(entry, [](Entry& e) { --e.in_cells; });
}

void BlockTree::remove(Entry& entry) {
  assert(entry.children.empty());
  change(entry, [](Entry& e) {
    e.in_cells = 0;
    e.host = HostState::none;
    e.disk = DiskState::none;
    e.leases = 0;
    e.payload = nullptr;
  });
  if (entry.parent != nullptr) {
    change(*entry.parent, [&](Entry& parent) { parent.children.erase(&entry); });
  } else {
    const auto root = roots_.find(entry.parent_id);
    root->second.erase(&entry);
    if (root->second.empty()) roots_.erase(root);
  }
  entries_.erase(entry.id);
}

std::vector<Entry*> BlockTree::subtree(Entry& entry) {
  std::vector<Entry*> all{&entry};
  for (std::size_t i = 0; i < all.size(); ++i) {
    all.insert(all.end(), all[i]->children.begin(), all[i]->children.end());
  }
  std::ranges::reverse(all);
  return all;
}

void BlockTree::touch(Entry& entry, TimePoint now) {
  change(entry, [&](Entry& e) {
    e.last_use = now;
    ++e.uses;
  });
}

void BlockTree::pin(Entry& entry) {
  change(entry, [](Entry& e) { ++e.leases; });
}

void BlockTree::unpin(Entry& entry) {
  assert(entry.leases > 0);
  change(entry, [](Entry& e) { --e.leases; });
}

void BlockTree::set_disk(Entry& entry, DiskState state) {
  assert(state != DiskState::none || entry.host == HostState::held);
  change(entry, [&](Entry& e) { e.disk = state; });
}

void BlockTree::begin_read(Entry& entry) {
  assert(entry.host == HostState::none && entry.disk == DiskState::held && fits_now(entry.payload_bytes));
  change(entry, [](Entry& e) { e.host = HostState::reading; });
}

void BlockTree::end_read(Entry& entry, Payload payload) {
  assert(entry.host == HostState::reading);
  change(entry, [&](Entry& e) {
    e.host = payload == nullptr ? HostState::none : HostState::held;
    e.payload = std::move(payload);
  });
}

void BlockTree::adopt(Entry& entry, Payload payload, std::uint64_t record_bytes) {
  assert(entry.host == HostState::none && payload != nullptr && fits_now(payload->size()));
  change(entry, [&](Entry& e) {
    e.payload_bytes = payload->size();
    e.record_bytes = record_bytes;
    e.host = HostState::held;
    e.payload = std::move(payload);
  });
}

void BlockTree::drop_host(Entry& entry) {
  assert(entry.host == HostState::held && !entry.pinned());
  if (entry.disk != DiskState::held && entry.in_cells == 0) return remove(entry);
  change(entry, [](Entry& e) {
    e.host = HostState::none;
    e.payload = nullptr;
    if (e.disk == DiskState::wanted) e.disk = DiskState::none;
  });
}

void BlockTree::drop_disk(Entry& entry) {
  assert(entry.disk == DiskState::held && !entry.pinned());
  if (entry.host == HostState::none && entry.in_cells == 0) return remove(entry);
  change(entry, [](Entry& e) { e.disk = DiskState::none; });
}

bool BlockTree::host_candidate(const Entry& e) {
  return e.host == HostState::held && !e.yields() && !e.pinned() && e.host_children == 0 &&
         (e.disk == DiskState::held || e.in_cells > 0 || e.children.empty());
}

bool BlockTree::disk_candidate(const Entry& e) {
  return e.disk == DiskState::held && !e.pinned() && e.disk_children == 0 &&
         (e.host == HostState::held || e.in_cells > 0 || e.children.empty());
}

// The one place where an entry changes: all that depends on it is kept in step, up the chain as far as it matters.
template <class F>
void BlockTree::change(Entry& entry, F&& f) {
  yielding_.erase(&entry);
  host_backed_.erase(&entry);
  host_alone_.erase(&entry);
  disk_.erase(&entry);
  const Share before = share_of(entry);
  f(entry);
  const Share after = share_of(entry);
  if (entry.yields()) yielding_.insert(&entry);
  if (host_candidate(entry)) host_list(entry).insert(&entry);
  if (disk_candidate(entry)) disk_.insert(&entry);

  const auto stuck_bytes = [](const Share& share) { return share.stuck ? share.host_bytes : 0; };
  totals_.host_bytes += after.host_bytes - before.host_bytes;
  totals_.disk_bytes += after.disk_bytes - before.disk_bytes;
  totals_.stuck_bytes += stuck_bytes(after) - stuck_bytes(before);
  totals_.host_blocks += std::uint64_t{after.host} - std::uint64_t{before.host};
  totals_.disk_blocks += std::uint64_t{after.on_disk} - std::uint64_t{before.on_disk};
  assert(totals_.host_bytes <= host_bytes_max_);

  const bool same = before.host == after.host && before.disk == after.disk && before.stuck == after.stuck;
  if (same || entry.parent == nullptr) return;
  // Another type of function each time would be a recursion of templates without end.
  const std::function<void(Entry&)> count = [&](Entry& parent) {
    parent.host_children += int{after.host} - int{before.host};
    parent.disk_children += int{after.disk} - int{before.disk};
    parent.stuck_children += int{after.stuck} - int{before.stuck};
  };
  change(*entry.parent, count);
}

Entry* BlockTree::least_worth(std::initializer_list<const Candidates*> lists, const BlockEvictionPolicy& policy,
                              TimePoint now, bool for_host) {
  const int looked_at_max = policy.candidates_max();
  Entry* victim = nullptr;
  double least = 0;
  for (const Candidates* list : lists) {
    int looked_at = 0;
    for (Entry* e : *list) {
      if (looked_at++ == looked_at_max) break;
      const double worth = policy.worth({.age = now - e->last_use,
                                         .uses = e->uses,
                                         .tokens = e->saves,
                                         .end = e->end(),
                                         .bytes = for_host ? e->payload_bytes : e->record_bytes,
                                         .on_disk_too = for_host && e->disk == DiskState::held});
      if (victim != nullptr && worth >= least) continue;
      victim = e;
      least = worth;
    }
  }
  return victim;
}

Entry* BlockTree::host_victim(const BlockEvictionPolicy& policy, TimePoint now) const {
  if (!yielding_.empty()) return *yielding_.begin();
  return least_worth({&host_backed_, &host_alone_}, policy, now, true);
}

Entry* BlockTree::disk_victim(const BlockEvictionPolicy& policy, TimePoint now) const {
  return least_worth({&disk_}, policy, now, false);
}

void BlockTree::for_each(const std::function<void(const Entry&)>& visit) const {
  for (const auto& [id, entry] : entries_) visit(entry);
}

void BlockTree::check_invariants() const {
  TreeTotals totals;
  [[maybe_unused]] std::size_t candidates = 0;
  for (const auto& [id, e] : entries_) {
    assert(e.id == id && e.parent == get(e.parent_id));
    assert(e.saved() || e.in_cells > 0);  // (1)
    assert(e.in_cells == 0 || (full(e) && !e.is_checkpoint()));
    assert((e.host == HostState::held) == (e.payload != nullptr));
    assert(e.payload == nullptr || e.payload->size() == e.payload_bytes);
    assert(e.host != HostState::reading || e.disk == DiskState::held);
    assert(!e.tokens.empty() && static_cast<TokenPos>(e.tokens.size()) <= block_tokens_);
    assert(e.parent == nullptr ? e.begin == 0 : full(*e.parent) && e.parent->end() == e.begin);
    assert(!e.is_checkpoint() || e.children.empty());
    assert(children_of(e.parent_id)->contains(std::span<const Token>(e.tokens)));
    const Share share = share_of(e);
    assert(!share.disk || e.parent == nullptr || share_of(*e.parent).disk);  // (2)
    assert(e.disk != DiskState::held || e.parent == nullptr || e.parent->disk == DiskState::held);
    int in_host = 0, on_disk = 0, stuck = 0;
    [[maybe_unused]] int in_cells = 0;
    for (const Entry* child : e.children) {
      in_cells += child->in_cells;
      assert(child->parent == &e);
      in_host += share_of(*child).host;
      on_disk += share_of(*child).disk;
      stuck += child->stuck();
    }
    assert(e.host_children == in_host && e.disk_children == on_disk && e.stuck_children == stuck);
    assert(in_cells <= e.in_cells);
    totals.host_bytes += share.host_bytes;
    totals.stuck_bytes += share.stuck ? share.host_bytes : 0;
    totals.disk_bytes += share.disk_bytes;
    totals.host_blocks += share.host;
    totals.disk_blocks += share.on_disk;
    auto* entry = const_cast<Entry*>(&e);  // only to look it up
    assert(yielding_.contains(entry) == e.yields());
    assert(host_backed_.contains(entry) == (host_candidate(e) && e.disk == DiskState::held));  // (4)
    assert(host_alone_.contains(entry) == (host_candidate(e) && e.disk != DiskState::held));
    assert(disk_.contains(entry) == disk_candidate(e));
    candidates += int{host_candidate(e)} + int{disk_candidate(e)} + int{e.yields()};
  }
  assert(candidates == yielding_.size() + host_backed_.size() + host_alone_.size() + disk_.size());
  assert(totals == totals_ && totals.host_bytes <= host_bytes_max_);  // (3)
  for (const auto& [id, children] : roots_) assert(!children.empty());
}

}  // namespace coppice::tier
