#include "net/connections.h"

namespace coppice::net {
namespace {

// Refused connections stay open for as long as their clients take to read the answer, so they are bounded as well.
constexpr std::size_t kRefusedMax = 64;

}  // namespace

Admission Connections::admit(const std::shared_ptr<Session>& session) {
  std::lock_guard lock(mutex_);
  const std::size_t refused = entries_.size() - served_;
  if (stopping_ || (served_ >= served_max_ && refused >= kRefusedMax)) return Admission::drop;
  const auto admission = served_ < served_max_ ? Admission::serve : Admission::refuse;
  entries_.emplace(session.get(), Entry{session, admission});
  if (admission == Admission::serve) ++served_;
  return admission;
}

void Connections::leave(Session* session) {
  std::lock_guard lock(mutex_);
  const auto it = entries_.find(session);
  if (it == entries_.end()) return;
  if (it->second.admission == Admission::serve) --served_;
  entries_.erase(it);
  // Under the lock: once the waiter is free to go on, it may destroy this object.
  if (entries_.empty()) none_left_.notify_all();
}

void Connections::stop_admitting() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
}

bool Connections::stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

std::vector<std::shared_ptr<Session>> Connections::all() const {
  std::vector<std::shared_ptr<Session>> sessions;
  std::lock_guard lock(mutex_);
  sessions.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) {
    if (auto session = entry.session.lock()) sessions.push_back(std::move(session));
  }
  return sessions;
}

bool Connections::wait_until_none(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return none_left_.wait_for(lock, patience, [this] { return entries_.empty(); });
}

void Connections::wait_until_none() {
  std::unique_lock lock(mutex_);
  none_left_.wait(lock, [this] { return entries_.empty(); });
}

}  // namespace coppice::net
