// What each session asked last, so that a later miss can be explained (spec A14). Explains only; decides nothing.
// Owner: the scheduler, on the engine thread. Bounded by sessions and by tokens; the least recently used go first.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>

#include "base/ids.h"
#include "kv/slot_map.h"

namespace coppice::sched {

class SessionHistory {
 public:
  struct Limits {
    std::size_t sessions_max = 4096;
    std::size_t tokens_max = std::size_t{16} << 20U;  // over all sessions: 64 MiB
  };
  explicit SessionHistory(Limits limits) : limits_(limits) {}

  // The session's last prompt, or null. Counts as a use.
  std::shared_ptr<const Tokens> last_prompt(const kv::SessionKey& session);

  void remember(const kv::SessionKey& session, std::shared_ptr<const Tokens> prompt);

  std::size_t size() const { return by_key_.size(); }
  std::size_t tokens() const { return tokens_; }

 private:
  struct Entry {
    kv::SessionKey key;
    std::shared_ptr<const Tokens> prompt;
  };
  using Order = std::list<Entry>;  // most recently used first

  void drop(Order::iterator entry);

  Limits limits_;
  Order order_;
  std::map<kv::SessionKey, Order::iterator> by_key_;
  std::size_t tokens_ = 0;
};

}  // namespace coppice::sched
