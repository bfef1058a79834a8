#include "sched/session_table.h"

#include <utility>

namespace coppice::sched {

const SessionTable::Session* SessionTable::find(const kv::SessionKey& key) const {
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : &*it->second;
}

void SessionTable::begin(const kv::SessionKey& key, std::shared_ptr<const Tokens> prompt, const std::string& parent,
                         SeqId seq, TimePoint now) {
  if (const auto it = by_key_.find(key); it == by_key_.end()) {
    order_.push_front({.key = key,
                       .last_prompt = nullptr,
                       .prompt_tokens = 0,
                       .parent = {},
                       .latest = {},
                       .requests = 0,
                       .last_use = {}});
    by_key_[key] = order_.begin();
  } else {
    order_.splice(order_.begin(), order_, it->second);
  }
  Session& session = order_.front();
  tokens_ += prompt->size();
  if (session.last_prompt) tokens_ -= session.last_prompt->size();
  session.last_prompt = std::move(prompt);
  session.prompt_tokens = static_cast<TokenPos>(session.last_prompt->size());
  if (!parent.empty()) session.parent = parent;
  session.latest = seq;
  session.last_use = now;
  ++session.requests;
  while (by_key_.size() > limits_.sessions_max || (tokens_ > limits_.tokens_max && by_key_.size() > 1)) {
    drop(std::prev(order_.end()));
  }
}

bool SessionTable::restore(Session session) {
  const std::size_t tokens = session.last_prompt->size();
  if (by_key_.size() >= limits_.sessions_max || tokens_ + tokens > limits_.tokens_max) return false;
  if (by_key_.contains(session.key)) return false;
  tokens_ += tokens;
  order_.push_back(std::move(session));
  by_key_[order_.back().key] = std::prev(order_.end());
  return true;
}

void SessionTable::lost(const kv::SessionKey& key, SeqId seq) {
  const auto it = by_key_.find(key);
  if (it != by_key_.end() && it->second->latest == seq) it->second->latest.reset();
}

void SessionTable::forget(const kv::SessionKey& key) {
  if (const auto it = by_key_.find(key); it != by_key_.end()) drop(it->second);
}

std::vector<const SessionTable::Session*> SessionTable::recent(NamespaceId ns, std::size_t count_max) const {
  std::vector<const Session*> result;
  for (const Session& session : order_) {
    if (result.size() >= count_max) break;
    if (session.key.ns == ns) result.push_back(&session);
  }
  return result;
}

void SessionTable::drop(Order::iterator session) {
  tokens_ -= session->last_prompt->size();
  by_key_.erase(session->key);
  const kv::SessionKey key = std::move(session->key);
  order_.erase(session);
  if (on_drop_) on_drop_(key);
}

}  // namespace coppice::sched
