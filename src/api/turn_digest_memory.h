// The digests of earlier requests, by the ids of their answers.
//
// Bounded by the number of digests, the least recently used turns go first. What one namespace has said is not found by
// another. Thread-safe: the mutex guards everything.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "api/turn_digests.h"
#include "base/ids.h"

namespace coppice::api {

class TurnDigestMemory {
 public:
  explicit TurnDigestMemory(std::size_t digests_max) : digests_max_(digests_max) {}

  // A turn with more digests than there may be is not remembered.
  void remember(NamespaceId ns, const std::string& id, TurnDigests turn);

  // Null when it is not known (any more).
  std::shared_ptr<const TurnDigests> find(NamespaceId ns, const std::string& id);

  // Both at once: remembers `now` under `id`, and compares it with the turn whose answer was `previous`.
  TurnComparison follow(NamespaceId ns, const std::string& previous, const std::string& id, TurnDigests now);

  std::size_t digests() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const TurnDigests> turn;
  };
  static std::string key_of(NamespaceId ns, const std::string& id);
  void drop(std::list<Entry>::iterator entry);

  const std::size_t digests_max_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  std::size_t digests_ = 0;  // in entries_
};

}  // namespace coppice::api
