#include "api/turn_digest_memory.h"

#include <utility>

namespace coppice::api {
namespace {

constexpr std::size_t kPerTurn = 4;  // besides those of its messages

std::size_t count(const TurnDigests& turn) { return kPerTurn + turn.messages.size(); }

}  // namespace

std::string TurnDigestMemory::key_of(NamespaceId ns, const std::string& id) {
  return std::to_string(ns.value) + ':' + id;
}

void TurnDigestMemory::drop(std::list<Entry>::iterator entry) {
  digests_ -= count(*entry->turn);
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

void TurnDigestMemory::remember(NamespaceId ns, const std::string& id, TurnDigests turn) {
  const std::size_t needed = count(turn);
  if (needed > digests_max_) return;
  Entry entry{key_of(ns, id), std::make_shared<const TurnDigests>(std::move(turn))};
  const std::lock_guard lock(mutex_);
  if (const auto old = by_key_.find(entry.key); old != by_key_.end()) drop(old->second);
  while (digests_ + needed > digests_max_) drop(std::prev(entries_.end()));
  digests_ += needed;
  entries_.push_front(std::move(entry));
  by_key_[entries_.front().key] = entries_.begin();
}

std::shared_ptr<const TurnDigests> TurnDigestMemory::find(NamespaceId ns, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key_of(ns, id));
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->turn;
}

TurnComparison TurnDigestMemory::follow(NamespaceId ns, const std::string& previous, const std::string& id,
                                        TurnDigests now) {
  const auto before = find(ns, previous);
  const TurnComparison out = before ? compare_turns(*before, now) : TurnComparison{.change = TurnChange::not_found};
  remember(ns, id, std::move(now));
  return out;
}

std::size_t TurnDigestMemory::digests() const {
  const std::lock_guard lock(mutex_);
  return digests_;
}

}  // namespace coppice::api
