// Prompts that are to be computed while nobody waits (spec B25): bounded, and one for each session, as only the newest
// end of a conversation can be gone on from. Requests without a session are all different.
// Owner: the scheduler. Threading: the engine thread. No sink is called from here: what has to go is handed back.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "kv/slot_map.h"
#include "sched/active.h"

namespace coppice::sched {

class BackgroundQueue {
 public:
  using Item = std::unique_ptr<Active>;
  using Items = std::vector<Item>;

  explicit BackgroundQueue(std::size_t limit) : limit_(limit) {}

  // The newest comes last. The oldest if there are too many now, else null.
  Item push(Item item);
  // For one that was begun and has to wait again: it comes first. If there are too many, the next one comes back.
  Item push_first(Item item);
  Item take(RequestId id);  // null if it is not here
  Item take_first();        // REQUIRES: not empty
  Items take_session(const kv::SessionKey& key);
  Items take_all();

  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  Active& first() { return *items_.front(); }  // REQUIRES: not empty
  const Active& first() const { return *items_.front(); }

 private:
  std::size_t limit_;
  std::deque<Item> items_;
};

}  // namespace coppice::sched
