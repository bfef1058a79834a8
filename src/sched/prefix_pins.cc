#include "sched/prefix_pins.h"

#include <algorithm>
#include <cassert>

namespace coppice::sched {

const PrefixPin* PrefixPins::at(SeqId seq) const {
  const auto it = std::ranges::find_if(pins_, [&](const PrefixPin& pin) { return pin.seq() == seq; });
  return it == pins_.end() ? nullptr : &*it;
}

void PrefixPins::remove(SeqId seq) {
  [[maybe_unused]] const auto removed = std::erase_if(pins_, [&](const PrefixPin& pin) { return pin.seq() == seq; });
  assert(removed == 1);
}

std::optional<SeqId> PrefixPins::first_to_expire() const {
  const auto it = std::ranges::min_element(pins_, {}, &PrefixPin::expires);
  return it == pins_.end() ? std::nullopt : std::optional(it->seq());
}

std::optional<TimePoint> PrefixPins::next_expiry() const {
  const auto seq = first_to_expire();
  return seq ? std::optional(at(*seq)->expires) : std::nullopt;
}

}  // namespace coppice::sched
