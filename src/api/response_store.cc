#include "api/response_store.h"

#include <prometheus/gauge.h>

#include <utility>

namespace coppice::api {
namespace {

std::size_t bytes_of(const ConversationTurn& turn) { return sizeof(turn) + turn.input.size() + turn.output.size(); }

std::size_t bytes_of(const StoredResponse& response) {
  return sizeof(response) + response.id.size() + response.response.size() +
         response.turns.size() * sizeof(std::shared_ptr<const ConversationTurn>) +
         response.digest.messages.size() * sizeof(std::uint64_t);
}

}  // namespace

ResponseStore::ResponseStore(std::size_t count_max, std::size_t bytes_max, obs::Metrics& metrics)
    : count_max_(count_max), bytes_max_(bytes_max), metrics_(metrics) {}

// `value` with `bytes` added to the store's, until the last holder lets it go.
template <class T>
std::shared_ptr<const T> ResponseStore::counted(T value, std::size_t bytes) const {
  *bytes_ += bytes;
  return {new T(std::move(value)), [all = bytes_, bytes](const T* gone) {
            delete gone;
            *all -= bytes;
          }};
}

void ResponseStore::put(StoredResponse response, ConversationTurn turn) {
  const std::size_t turn_bytes = bytes_of(turn);
  if (turn_bytes + bytes_of(response) > bytes_max_) return;
  const std::lock_guard lock(mutex_);
  response.turns.push_back(counted(std::move(turn), turn_bytes));
  const std::size_t response_bytes = bytes_of(response);
  entries_.push_front(counted(std::move(response), response_bytes));
  by_id_[entries_.front()->id] = entries_.begin();
  while (!entries_.empty() && (entries_.size() > count_max_ || *bytes_ > bytes_max_)) {
    remove(std::prev(entries_.end()));
  }
  publish();
}

std::shared_ptr<const StoredResponse> ResponseStore::find(NamespaceId ns, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || (*found->second)->ns != ns) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front();
}

bool ResponseStore::erase(NamespaceId ns, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || (*found->second)->ns != ns) return false;
  remove(found->second);
  publish();
  return true;
}

std::size_t ResponseStore::count() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void ResponseStore::remove(Entries::iterator entry) {
  by_id_.erase((*entry)->id);
  entries_.erase(entry);
}

void ResponseStore::publish() const {
  metrics_.responses_stored.Set(static_cast<double>(entries_.size()));
  metrics_.responses_stored_bytes.Set(static_cast<double>(*bytes_));
}

}  // namespace coppice::api
