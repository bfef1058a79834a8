// What is known of each session: its last prompt, so that a later miss can be explained (spec A14), where its latest
// request ran, and what people are told of it. Decides nothing about reuse.
// Owner: the scheduler, on the engine thread. Bounded by sessions and by tokens; the least recently used go first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "kv/slot_map.h"

namespace coppice::sched {

class SessionTable {
 public:
  struct Limits {
    std::size_t sessions_max = 4096;
    std::size_t tokens_max = std::size_t{16} << 20U;  // over all sessions: 64 MiB
  };
  struct Session {
    kv::SessionKey key;
    std::shared_ptr<const Tokens> last_prompt;  // after a restart perhaps only its beginning
    TokenPos prompt_tokens = 0;                 // the length of it all
    std::string parent;
    std::optional<SeqId> latest;  // the sequence of its latest request, while that is still this session's
    std::int64_t requests = 0;
    TimePoint last_use{};
  };
  // `on_drop` is called with each session that the table forgets; may be empty.
  explicit SessionTable(Limits limits, std::function<void(const kv::SessionKey&)> on_drop = {})
      : limits_(limits), on_drop_(std::move(on_drop)) {}

  // Null if it is not known. Valid until the table changes.
  const Session* find(const kv::SessionKey& key) const;

  // A request of the session begins with this prompt, in this sequence. An empty `parent` leaves the former one.
  void begin(const kv::SessionKey& key, std::shared_ptr<const Tokens> prompt, const std::string& parent, SeqId seq,
             TimePoint now);

  // A session of before the start, used longer ago than all that are known. False if the table has no room for it.
  bool restore(Session session);

  // The sequence is no longer the session's: it was given up, or another session's request goes on from it.
  void lost(const kv::SessionKey& key, SeqId seq);

  void forget(const kv::SessionKey& key);

  // Most recently used first; of all namespaces, or the first `count_max` of one.
  const std::list<Session>& recent() const { return order_; }
  std::vector<const Session*> recent(NamespaceId ns, std::size_t count_max) const;

  std::size_t size() const { return by_key_.size(); }
  std::size_t tokens() const { return tokens_; }
  const Limits& limits() const { return limits_; }

 private:
  using Order = std::list<Session>;  // most recently used first

  void drop(Order::iterator session);

  Limits limits_;
  std::function<void(const kv::SessionKey&)> on_drop_;
  Order order_;
  std::map<kv::SessionKey, Order::iterator> by_key_;
  std::size_t tokens_ = 0;
};

}  // namespace coppice::sched
