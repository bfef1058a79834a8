#include "sched/residency.h"

#include <prometheus/counter.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace coppice::sched {
namespace {

// Every slot can need a sequence while all pools and pins are there.
std::size_t pools_possible(const Residency::Options& options, const engine::RunnerInfo& info) {
  return std::min(options.pools_max, static_cast<std::size_t>(info.n_seqs - options.n_slots));
}

}  // namespace

Residency::Residency(const Options& options, engine::Runner& runner, const Clock& clock, obs::Metrics& metrics)
    : runner_(runner),
      clock_(clock),
      metrics_(metrics),
      policy_(options.eviction ? options.eviction : std::make_shared<kv::RecomputeCostPolicy>()),
      on_loss_(options.on_loss),
      sequences_(runner, clock),
      sessions_(options.sessions, options.on_forgotten),
      pinned_max_(pools_possible(options, runner.info())),
      pools_(pinned_max_),
      slots_(static_cast<std::size_t>(options.n_slots) + 1) {}

TokenPos Residency::held(SlotId slot) const {
  const auto seq = of(slot);
  return seq ? sequences_.length(*seq) : 0;
}

bool Residency::is_parked(SeqId seq) const {
  return sequences_.in_use(seq) && !sequences_.notes(seq).slot && pools_.of(seq) == nullptr && !pins_.contains(seq);
}

std::int32_t Residency::n_parked() const {
  const auto in_slots =
      static_cast<std::int32_t>(std::count_if(slots_.begin(), slots_.end(), [](const auto& seq) { return !!seq; }));
  return sequences_.in_use() - in_slots - static_cast<std::int32_t>(pools_.size() + pins_.size());
}

SequencePlace Residency::place(SeqId seq) const {
  SequencePlace place{.seq = seq, .slot = sequences_.notes(seq).slot, .pool = {}};
  if (place.slot && static_cast<std::size_t>(place.slot->value) + 1 == slots_.size()) place.slot.reset();  // the lane
  if (const Pool* pool = pools_.of(seq)) {
    place.pool = pool->name;
  } else if (pins_.contains(seq)) {
    place.pinned = true;
  } else {
    place.running = sequences_.leases().held(seq);
  }
  return place;
}

SeqId Residency::begin(SlotId slot, const kv::ReusePlan& plan) {
  const auto own = of(slot);
  const bool ends_there = plan.from && !plan.cells_only && plan.reused == sequences_.length(*plan.from);
  if (own && plan.from == own && ends_there) {
    ++sequences_.notes(*own).uses;
    return *own;
  }
  SeqId seq;
  if (ends_there && is_parked(*plan.from)) {
    leave(slot);
    seq = *plan.from;
  } else {
    const kv::Lease donor = plan.from ? sequences_.leases().take(*plan.from) : kv::Lease{};
    leave(slot);
    const auto fresh = acquire();
    if (fresh && plan.from) {
      plan.cells_only ? sequences_.share_cells(*plan.from, *fresh, plan.reused)
                      : sequences_.share(*plan.from, *fresh, plan.reused);
    }
    // With every sequence in use by someone who needs it, what is left to take is the one to start from, which no slot
    // has (the own one was left just now): there is a sequence for every slot beside the pools.
    assert(fresh || (plan.from && is_parked(*plan.from)));
    seq = fresh ? *fresh : *plan.from;
  }
  Sequences::Notes& notes = sequences_.notes(seq);
  notes.uses = plan.from ? sequences_.notes(*plan.from).uses + 1 : 0;
  notes.slot = slot;
  slot_ref(slot) = seq;
  if (on_loss_ && plan.reused < sequences_.length(seq)) on_loss_(seq, plan.reused);
  sequences_.cut(seq, plan.reused);
  sequences_.touch(seq);
  return seq;
}

bool Residency::can_share_cells(SeqId from) const {
  for (std::int32_t i = 0; i < sequences_.count(); ++i) {
    const SeqId seq{i};
    if (!sequences_.in_use(seq) || (seq != from && !sequences_.leases().held(seq))) return true;
  }
  return false;
}

// A free sequence, or one that is given up for it.
std::optional<SeqId> Residency::acquire() {
  auto found = sequences_.acquire();
  while (!found && evict_one(kv::Shortage::sequences, 0, {})) found = sequences_.acquire();
  return found;
}

void Residency::leave(SlotId slot) {
  const auto seq = std::exchange(slot_ref(slot), std::nullopt);
  if (!seq) return;
  sequences_.notes(*seq).slot.reset();
  settle_unowned(*seq);
}

// Nobody owns it any more: it stays for anyone to start from, unless that can be done as well elsewhere.
void Residency::settle_unowned(SeqId seq) {
  if (!sequences_.leases().held(seq) && sequences_.covered(seq)) drop(seq);
}

void Residency::fold(SeqId seq) { metrics_.cells_folded.Increment(sequences_.fold(seq)); }

void Residency::retire(SeqId seq) {
  sequences_.settle(seq);
  fold(seq);
  for (const SeqId other : sequences_.covered_by(seq)) {
    if (!is_parked(other) || sequences_.leases().held(other)) continue;
    sequences_.notes(seq).uses = std::max(sequences_.notes(seq).uses, sequences_.notes(other).uses);
    drop(other);
  }
}

void Residency::drop(SeqId seq) {
  const Sequences::Notes& notes = sequences_.notes(seq);
  metrics_.background(obs::Prepared::wasted).Increment(std::max(0, notes.prepared_end - notes.prepared_begin));
  if (const auto slot = sequences_.notes(seq).slot) slot_ref(*slot).reset();
  if (const auto session = sequences_.notes(seq).session) sessions_.lost(*session, seq);
  sequences_.clear(seq);
}

void Residency::set_session(SeqId seq, const std::optional<kv::SessionKey>& session) {
  auto& mark = sequences_.notes(seq).session;
  if (mark == session) return;
  if (mark) sessions_.lost(*mark, seq);
  mark = session;
}

bool Residency::evict_one(kv::Shortage shortage, TokenPos cells, const SeqSet& wanted) {
  std::vector<kv::Evictable> choices;
  for (std::int32_t i = 0; i < sequences_.count(); ++i) {
    const SeqId seq{i};
    if (!sequences_.in_use(seq) || sequences_.leases().held(seq)) continue;
    const Sequences::Notes& notes = sequences_.notes(seq);
    const SessionTable::Session* session = notes.session ? sessions_.find(*notes.session) : nullptr;
    choices.push_back({.seq = seq,
                       .length = sequences_.length(seq),
                       .exclusive = sequences_.cells().exclusive(seq),
                       .idle = clock_.now() - notes.touched_at,
                       .last_touch = notes.last_touch,
                       .uses = notes.uses,
                       .session_alive = session != nullptr && session->latest == seq,
                       .wanted = wanted.test(static_cast<std::size_t>(i))});
  }
  const auto victim = kv::choose_victim(choices, shortage, *policy_);
  if (!victim) return false;
  metrics_.sequences_evicted.Increment();
  const bool end_alone = shortage == kv::Shortage::cells && sequences_.can_trim(*victim, cells);
  if (on_loss_) on_loss_(*victim, end_alone ? sequences_.length_after_trim(*victim, cells) : 0);
  if (end_alone) {
    sequences_.trim(*victim, cells);
    if (is_parked(*victim)) settle_unowned(*victim);
  } else {
    drop(*victim);
  }
  return true;
}

std::vector<kv::CellMap::Keep> Residency::pinned() const {
  std::vector<kv::CellMap::Keep> keeps;
  for (const Pool* pool : pools_.all()) keeps.push_back({pool->seq(), sequences_.length(pool->seq())});
  for (const PrefixPin& pin : pins_.all()) keeps.push_back({pin.seq(), sequences_.length(pin.seq())});
  return keeps;
}

TokenPos Residency::pinned_cells() const { return sequences_.cells().kept_by(pinned()); }

void Residency::pin(SlotId slot, NamespaceId ns, const PoolSpec& spec) {
  unpin(ns, spec.name);
  const SeqId seq = *std::exchange(slot_ref(slot), std::nullopt);
  sequences_.notes(seq).slot.reset();
  set_session(seq, std::nullopt);
  Pool pool{.ns = ns,
            .name = spec.name,
            .lease = sequences_.leases().take(seq),
            .made = clock_.now(),
            .last_use = clock_.now(),
            .expires = {}};
  if (spec.ttl.count() > 0) pool.expires = clock_.now() + spec.ttl;
  while (pools_.size() + pins_.size() >= pinned_max_ && give_up_a_pin()) {
  }
  pools_.add(std::move(pool));
  while (pinned_cells() > pinned_cells_max() && give_up_a_pin()) {
  }
}

void Residency::unpin(NamespaceId ns, const std::string& name) {
  if (pools_.find(ns, name) == nullptr) return;
  Pool pool = pools_.take(ns, name);
  const SeqId seq = pool.seq();
  pool.lease.release();
  settle_unowned(seq);
}

bool Residency::unpin_expired() {
  bool any = false;
  for (auto next = pins_.next_expiry(); next && *next <= clock_.now(); next = pins_.next_expiry()) {
    any = give_up_a_pin();
  }
  for (auto next = pools_.next_expiry(); next && *next <= clock_.now(); next = pools_.next_expiry()) {
    for (const Pool* pool : pools_.all()) {
      if (pool->expires != next) continue;
      unpin(NamespaceId{pool->ns}, std::string(pool->name));
      any = true;
      break;
    }
  }
  return any;
}

std::optional<TimePoint> Residency::next_expiry() const {
  const auto pool = pools_.next_expiry(), pin = pins_.next_expiry();
  return pool && pin ? std::min(*pool, *pin) : pool ? pool : pin;
}

void Residency::check_invariants() const {
  sequences_.check_invariants();
  [[maybe_unused]] std::int32_t parked = 0;
  for (std::int32_t i = 0; i < sequences_.count(); ++i) {
    const SeqId seq{i};
    const auto slot = sequences_.notes(seq).slot;
    assert(!slot || of(*slot) == seq);
    assert((slot ? 1 : 0) + (pools_.of(seq) != nullptr ? 1 : 0) + (pins_.contains(seq) ? 1 : 0) <= 1);
    assert(!is_parked(seq) || !sequences_.leases().held(seq));
    parked += is_parked(seq) ? 1 : 0;
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    assert(!slots_[i] || sequences_.notes(*slots_[i]).slot == SlotId{static_cast<std::int32_t>(i)});
  }
  assert(parked == n_parked());
  assert(pools_.size() + pins_.size() <= pinned_max_);
}

}  // namespace coppice::sched
