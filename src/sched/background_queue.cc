#include "sched/background_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace coppice::sched {

BackgroundQueue::Item BackgroundQueue::push(Item item) {
  items_.push_back(std::move(item));
  return items_.size() > limit_ ? take_first() : nullptr;
}

BackgroundQueue::Item BackgroundQueue::push_first(Item item) {
  items_.push_front(std::move(item));
  if (items_.size() <= limit_) return nullptr;
  const auto next = items_.begin() + (items_.size() > 1 ? 1 : 0);
  Item gone = std::move(*next);
  items_.erase(next);
  return gone;
}

BackgroundQueue::Item BackgroundQueue::take(RequestId id) {
  const auto it = std::ranges::find_if(items_, [&](const Item& item) { return item->request.id == id; });
  if (it == items_.end()) return nullptr;
  Item item = std::move(*it);
  items_.erase(it);
  return item;
}

BackgroundQueue::Item BackgroundQueue::take_first() {
  Item item = std::move(items_.front());
  items_.pop_front();
  return item;
}

BackgroundQueue::Items BackgroundQueue::take_session(const kv::SessionKey& key) {
  const auto others =
      std::stable_partition(items_.begin(), items_.end(), [&](const Item& item) { return item->session() != key; });
  Items gone(std::make_move_iterator(others), std::make_move_iterator(items_.end()));
  items_.erase(others, items_.end());
  return gone;
}

BackgroundQueue::Items BackgroundQueue::take_all() {
  Items all(std::make_move_iterator(items_.begin()), std::make_move_iterator(items_.end()));
  items_.clear();
  return all;
}

}  // namespace coppice::sched
