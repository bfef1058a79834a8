// Prefixes that clients' cache marks keep for a while: each is a sequence with a lease on it until its time is over.
// Unlike a pool it has no name, and it gives way where a request could not run or end otherwise.
// Owner: Residency, on the engine thread, which also bounds their number and cells.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "kv/lease.h"

namespace coppice::sched {

struct PrefixPin {
  kv::Lease lease;  // on its sequence
  TimePoint expires{};
  SeqId seq() const { return lease.seq(); }
};

class PrefixPins {
 public:
  std::size_t size() const { return pins_.size(); }
  const std::vector<PrefixPin>& all() const { return pins_; }
  bool contains(SeqId seq) const { return at(seq) != nullptr; }
  // Null if the sequence is none. Valid until the next call that changes the pins.
  PrefixPin* at(SeqId seq) { return const_cast<PrefixPin*>(std::as_const(*this).at(seq)); }
  const PrefixPin* at(SeqId seq) const;

  void add(PrefixPin pin) { pins_.push_back(std::move(pin)); }
  // Lets go of its lease. REQUIRES: contains(seq).
  void remove(SeqId seq);

  // The one whose time is over first; none if there are none.
  std::optional<SeqId> first_to_expire() const;
  std::optional<TimePoint> next_expiry() const;

 private:
  std::vector<PrefixPin> pins_;  // a few dozen at most
};

}  // namespace coppice::sched
