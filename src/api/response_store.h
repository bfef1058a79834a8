// Responses that clients may come back to by their id (OpenAI's "store"): in memory, bounded in number and in bytes;
// those not used for longest go first. A restart forgets them all.
//
// A response is its answer as text, and the turns of the conversation that led to it. Turns are shared by all responses
// of one conversation, so that a conversation of n turns takes n turns' bytes, not n * n / 2. Bytes count while
// anything holds them, also a response that has been found and is still in use.
//
// Threading: safe from any thread; a mutex guards everything but the turns and responses, which never change.
// Invariant: responses are found in their own namespace only.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/cache_diagnostics.h"
#include "base/ids.h"
#include "obs/metrics.h"

namespace coppice::api {

// What one request brought and what it was answered, both JSON arrays of items as text.
struct ConversationTurn {
  std::string input, output;
};

struct StoredResponse {
  std::string id;
  NamespaceId ns;
  std::string response;                                        // JSON text, as it was answered
  std::vector<std::shared_ptr<const ConversationTurn>> turns;  // oldest first; the last one is its own
  PromptDigest digest;
};

class ResponseStore {
 public:
  // At most `count_max` responses and `bytes_max` bytes. `metrics` must outlive the store.
  ResponseStore(std::size_t count_max, std::size_t bytes_max, obs::Metrics& metrics);

  // Stores `response` with the turn added to its `turns`. One that is larger than the whole store is not kept.
  void put(StoredResponse response, ConversationTurn turn);

  // Null when there is no such response in `ns` (any more).
  std::shared_ptr<const StoredResponse> find(NamespaceId ns, std::string_view id);

  // False when there is none. Responses that continue it keep its turns.
  bool erase(NamespaceId ns, std::string_view id);

  std::size_t count() const;
  std::size_t bytes() const { return *bytes_; }

 private:
  using Entries = std::list<std::shared_ptr<const StoredResponse>>;  // most recently used first
  template <class T>
  std::shared_ptr<const T> counted(T value, std::size_t bytes) const;
  void remove(Entries::iterator entry);
  void publish() const;

  const std::size_t count_max_, bytes_max_;
  obs::Metrics& metrics_;
  // Shared with everything that is counted, which may outlive the store.
  const std::shared_ptr<std::atomic<std::size_t>> bytes_ = std::make_shared<std::atomic<std::size_t>>(0);
  mutable std::mutex mutex_;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_id_;  // keys point into the entries
};

}  // namespace coppice::api
