#include "session/turn_memory.h"

#include <utility>

namespace coppice::session {

std::size_t Turn::bytes() const {
  std::size_t n = sizeof *this + session.size() + content.size() + reasoning.size();
  n += sizeof(Token) * ((prompt ? prompt->size() : 0) + generated.size());
  for (const Call& call : calls) n += call.id.size() + call.name.size() + call.arguments.size();
  for (const std::string& id : ids) n += id.size();
  return n;
}

void TurnMemory::remember(const Digest& conversation, Turn turn) {
  const std::lock_guard lock(mutex_);
  if (const auto known = by_digest_.find(conversation); known != by_digest_.end()) drop(known->second);
  bytes_ += turn.bytes();
  order_.push_front({conversation, std::make_shared<const Turn>(std::move(turn))});
  by_digest_[conversation] = order_.begin();
  const Turn& kept = *order_.front().turn;
  for (const std::string& id : kept.ids) by_id_[{kept.ns, id}] = order_.begin();
  while (order_.size() > limits_.turns_max || (bytes_ > limits_.bytes_max && !order_.empty())) {
    drop(std::prev(order_.end()));
  }
}

std::shared_ptr<const Turn> TurnMemory::find(const Digest& conversation) {
  const std::lock_guard lock(mutex_);
  const auto it = by_digest_.find(conversation);
  if (it == by_digest_.end()) return nullptr;
  order_.splice(order_.begin(), order_, it->second);
  return it->second->turn;
}

std::string TurnMemory::session_of(NamespaceId ns, std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto it = by_id_.find(std::pair(ns, std::string(id)));
  return it == by_id_.end() ? std::string{} : it->second->turn->session;
}

std::size_t TurnMemory::size() const {
  const std::lock_guard lock(mutex_);
  return order_.size();
}

std::size_t TurnMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void TurnMemory::drop(Order::iterator entry) {
  const Turn& turn = *entry->turn;
  bytes_ -= turn.bytes();
  for (const std::string& id : turn.ids) {
    const auto it = by_id_.find(std::pair(turn.ns, id));
    if (it != by_id_.end() && it->second == entry) by_id_.erase(it);
  }
  by_digest_.erase(entry->conversation);
  order_.erase(entry);
}

}  // namespace coppice::session
