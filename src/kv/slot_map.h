// Which session last used which slot (spec A2). A slot serves one session at a time; a session has at most one slot.
// Owner: the scheduler, on the engine thread. Bounded by the number of slots.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.h"

namespace coppice::kv {

// Keys of different namespaces never meet.
struct SessionKey {
  NamespaceId ns;
  std::string name;  // never empty
  friend auto operator<=>(const SessionKey&, const SessionKey&) = default;
};

class SlotMap {
 public:
  std::optional<SlotId> slot_of(const SessionKey& session) const {
    const auto it = slot_by_session_.find(session);
    return it == slot_by_session_.end() ? std::nullopt : std::optional(it->second);
  }

  const SessionKey* session_of(SlotId slot) const {
    const auto it = session_by_slot_.find(slot);
    return it == session_by_slot_.end() ? nullptr : &it->second;
  }

  // The slot now serves this session: the one it served before is dropped, and so is this session's former slot.
  void commit(const SessionKey& session, SlotId slot) {
    if (const auto old = session_by_slot_.find(slot); old != session_by_slot_.end())
      slot_by_session_.erase(old->second);
    if (const auto former = slot_of(session)) session_by_slot_.erase(*former);
    slot_by_session_[session] = slot;
    session_by_slot_[slot] = session;
  }

  void forget(const SessionKey& session) {
    if (const auto slot = slot_of(session)) session_by_slot_.erase(*slot);
    slot_by_session_.erase(session);
  }

  std::size_t size() const { return slot_by_session_.size(); }

 private:
  std::map<SessionKey, SlotId> slot_by_session_;
  std::map<SlotId, SessionKey> session_by_slot_;
};

}  // namespace coppice::kv
