#include "sched/session_history.h"

#include <utility>

namespace coppice::sched {

std::shared_ptr<const Tokens> SessionHistory::last_prompt(const kv::SessionKey& session) {
  const auto it = by_key_.find(session);
  if (it == by_key_.end()) return nullptr;
  order_.splice(order_.begin(), order_, it->second);
  return it->second->prompt;
}

void SessionHistory::remember(const kv::SessionKey& session, std::shared_ptr<const Tokens> prompt) {
  if (const auto it = by_key_.find(session); it != by_key_.end()) drop(it->second);
  tokens_ += prompt->size();
  order_.push_front({session, std::move(prompt)});
  by_key_[session] = order_.begin();
  while (by_key_.size() > limits_.sessions_max || (tokens_ > limits_.tokens_max && by_key_.size() > 1)) {
    drop(std::prev(order_.end()));
  }
}

void SessionHistory::drop(Order::iterator entry) {
  tokens_ -= entry->prompt->size();
  by_key_.erase(entry->key);
  order_.erase(entry);
}

}  // namespace coppice::sched
