// The prefixes that clients' cache marks keep: what is pinned for how long, and what gives way to what.
#include <algorithm>
#include <cassert>
#include <utility>

#include "sched/residency.h"

namespace coppice::sched {

// Whether a pool or a pin already keeps the first `length` tokens for long enough. One of exactly them is kept longer.
bool Residency::extend_pin(const std::vector<TokenPos>& common, TokenPos length, TimePoint expires) {
  const bool anywhere = runner_.info().rewind == engine::Rewind::anywhere;
  const auto keeps = [&](SeqId seq) {
    const TokenPos its = sequences_.length(seq);
    const TokenPos shared = std::min(common[static_cast<std::size_t>(seq.value)], its);
    return shared >= length && (anywhere || its == length);
  };
  for (const Pool* pool : pools_.all()) {
    if (keeps(pool->seq()) && (!pool->expires || *pool->expires >= expires)) return true;
  }
  for (const PrefixPin& pin : pins_.all()) {
    if (!keeps(pin.seq())) continue;
    if (sequences_.length(pin.seq()) == length) {
      PrefixPin& same = *pins_.at(pin.seq());
      same.expires = std::max(same.expires, expires);
      return true;
    }
    if (pin.expires >= expires) return true;
  }
  return false;
}

// The pins that one of the first `length` tokens takes the place of: shorter ones on its way that it outlives. Where a
// state cannot go back they are of use beside it, for conversations that leave it there: then only the longest goes,
// and only if there is no place left.
std::vector<SeqId> Residency::superseded_by(const std::vector<TokenPos>& common, TokenPos length,
                                            TimePoint expires) const {
  std::vector<SeqId> result;
  for (const PrefixPin& pin : pins_.all()) {
    const TokenPos its = sequences_.length(pin.seq());
    if (its < length && common[static_cast<std::size_t>(pin.seq().value)] >= its && pin.expires <= expires) {
      result.push_back(pin.seq());
    }
  }
  if (runner_.info().rewind == engine::Rewind::anywhere || result.empty()) return result;
  if (pools_.size() + pins_.size() < pinned_max_) return {};
  return {*std::ranges::max_element(result, {}, [&](SeqId seq) { return sequences_.length(seq); })};
}

bool Residency::pin_prefix(SeqId from, NamespaceId ns, std::span<const Token> prefix, Duration ttl) {
  const auto length = static_cast<TokenPos>(prefix.size());
  const TimePoint expires = clock_.now() + ttl;
  const std::vector<TokenPos> common = sequences_.tree().common(ns, prefix);
  if (extend_pin(common, length, expires)) return true;
  if (!runner_.can_resume(from, sequences_.length(from), length)) return false;
  const std::vector<SeqId> superseded = superseded_by(common, length, expires);
  if (pools_.size() + pins_.size() - superseded.size() >= pinned_max_) return false;
  std::vector<kv::CellMap::Keep> keeps{{from, length}};
  for (const kv::CellMap::Keep& keep : pinned()) {
    if (std::ranges::find(superseded, keep.seq) == superseded.end()) keeps.push_back(keep);
  }
  if (sequences_.cells().kept_by(keeps) > pinned_cells_max()) return false;

  for (const SeqId old : superseded) unpin_prefix(old);
  const auto seq = acquire();
  assert(seq);  // there is one for every slot beside the pools and pins
  sequences_.share(from, *seq, length);
  sequences_.promise(*seq, ns, Tokens(prefix.begin(), prefix.end()));
  pins_.add({sequences_.leases().take(*seq), expires});
  return true;
}

void Residency::unpin_prefix(SeqId seq) {
  pins_.remove(seq);
  settle_unowned(seq);
}

bool Residency::give_up_a_pin() {
  const auto seq = pins_.first_to_expire();
  if (seq) unpin_prefix(*seq);
  return seq.has_value();
}

}  // namespace coppice::sched
