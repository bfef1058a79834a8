// Admission: which queued request starts, in which slot, from which prefix, and who makes room for it.
#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <cassert>

#include "sched/scheduler.h"

namespace coppice::sched {

void Scheduler::admit() {
  for (std::size_t i = 0; i < queue_.size();) {
    if (running() == slots_.size()) return;
    if (waits_for_fork(*queue_[i])) {
      ++i;
      continue;
    }
    switch (try_admit(queue_[i])) {
      case Admission::admitted: queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i)); break;
      case Admission::wait_for_slot: ++i; break;
      // Nobody overtakes a request that waits for cells: small ones would keep a big one waiting for ever.
      case Admission::wait_for_cells: return;
    }
  }
}

// One of n completions waits until the first has computed the prompt, to start from there.
bool Scheduler::waits_for_fork(const Active& a) const {
  if (!a.request.placement.fork_of) return false;
  const RequestId first = *a.request.placement.fork_of;
  if (const Slot* s = slot_of(first)) return s->active->phase == Phase::prefilling;
  return std::any_of(queue_.begin(), queue_.end(), [&](const auto& q) { return q && q->request.id == first; });
}

Scheduler::Admission Scheduler::try_admit(std::unique_ptr<Active>& waiting) {
  const kv::SlotChoice choice = place(*waiting);
  if (!choice.slot) return Admission::wait_for_slot;
  Slot& s = slot(*choice.slot);
  const kv::ReuseQuery query = reuse_query(*waiting, s);
  const kv::ReusePlan plan = kv::plan_reuse(query);
  if (!cells_suffice(*waiting, s, plan)) return Admission::wait_for_cells;
  start(std::move(waiting), s, {choice.rule, query, plan});
  return Admission::admitted;
}

// Slot choice (spec A1). The first prompt decides: a request that was paused is placed like a new one.
kv::SlotChoice Scheduler::place(const Active& a) const {
  std::vector<kv::SlotView> views;
  views.reserve(slots_.size());
  for (const Slot& s : slots_) {
    kv::SlotView view{s.id, !!s.active, sequences_.length(s.seq) == 0, 0, s.last_used};
    if (!view.busy) view.common = sequences_.holder(s.seq, *a.input, a.request.placement.ns).common;
    views.push_back(view);
  }
  kv::SlotWish wish{.id_slot = a.request.placement.id_slot,
                    .prompt_length = a.input_length(),
                    .similarity_min = options_.slot_prompt_similarity};
  if (const auto session = a.session()) wish.session_slot = slot_map_.slot_of(*session);
  return kv::choose_slot(views, wish);
}

// Who may hold a beginning of the prompt: the own slot, the donor that the request names, its session's other slot.
kv::ReuseQuery Scheduler::reuse_query(const Active& a, const Slot& own) const {
  const Placement& p = a.request.placement;
  const auto holder = [&](const Slot& s) { return sequences_.holder(s.seq, *a.input, p.ns); };
  kv::ReuseQuery query{.prompt_length = a.input_length(), .cache_prompt = p.cache_prompt, .own = holder(own)};
  query.can_resume = [this](SeqId seq, TokenPos length, TokenPos at) { return runner_.can_resume(seq, length, at); };
  query.can_fold = runner_.info().rewind == engine::Rewind::anywhere;

  if (p.shared_pool_slot && p.shared_prefix_n_tokens > 0 && *p.shared_pool_slot != own.id) {
    query.pool = holder(slot(*p.shared_pool_slot));
    query.pool_prefix = std::min(p.shared_prefix_n_tokens, a.input_length());
  }
  if (const auto session = a.session()) {
    const auto other = slot_map_.slot_of(*session);
    if (other && *other != own.id) query.other = holder(slot(*other));
  }
  if (p.fork_of) {  // the first completion's slot, or whoever holds the most of the prompt by now
    for (const Slot& s : slots_) {
      const kv::Holder h = holder(s);
      if (s.id != own.id && (!query.other || h.common > query.other->common)) query.other = h;
    }
  }
  return query;
}

// Cells that running requests still need for their prompts; they were admitted with them.
TokenPos Scheduler::reserved_cells() const {
  TokenPos reserved = 0;
  for (const Slot& s : slots_) {
    if (s.active) reserved += std::max(0, s.active->input_length() - sequences_.length(s.seq));
  }
  return reserved;
}

// Whether the prompt fits beside what is running if every idle sequence were evicted, with a cell for the first token.
bool Scheduler::cells_suffice(const Active& a, const Slot& own, const kv::ReusePlan& plan) const {
  std::vector<kv::CellMap::Keep> keeps;
  for (const Slot& s : slots_) {
    if (s.active) keeps.push_back({s.seq, sequences_.length(s.seq)});
  }
  keeps.push_back(plan.share > plan.keep ? kv::CellMap::Keep{*plan.donor, plan.share}
                                         : kv::CellMap::Keep{own.seq, plan.keep});
  const TokenPos need = a.input_length() - plan.reused() + 1;
  return sequences_.cells().kept_by(keeps) + need + reserved_cells() <= runner_.info().n_cells;
}

void Scheduler::start(std::unique_ptr<Active> a, Slot& s, const AdmissionFacts& facts) {
  explain(*a, facts);
  const TokenPos folded = sequences_.apply(s.seq, facts.plan, a->request.placement.ns);
  metrics_.cells_folded.Increment(folded);
  const TokenPos need = a->input_length() - facts.plan.reused() + 1 + reserved_cells();
  while (sequences_.free_cells() < need && evict_one(&s)) {
  }
  if (const auto session = a->session()) {
    slot_map_.commit(*session, s.id);
    if (a->request.placement.cache_prompt) history_.remember(*session, a->request.prompt);
  }
  a->phase = Phase::prefilling;
  a->admitted = clock_.now();
  if (!a->started) {
    a->report.queued = a->admitted - a->arrived;
    metrics_.queue_seconds.Observe(to_ms(a->report.queued) / 1000);
  }
  a->started = true;
  a->report.slot = s.id;
  s.active = std::move(a);
}

// Clears the idle sequence that was used least recently; donors that waiting requests name come last. False if there is
// none.
bool Scheduler::evict_one(const Slot* except) {
  const auto rank = [this](const Slot& s) {
    const bool wanted = std::any_of(queue_.begin(), queue_.end(),
                                    [&](const auto& a) { return a && a->request.placement.shared_pool_slot == s.id; });
    return std::pair(wanted, sequences_.last_touch(s.seq));
  };
  const Slot* first = nullptr;
  for (const Slot& s : slots_) {
    if (&s == except || s.active || sequences_.length(s.seq) == 0) continue;
    if (first == nullptr || rank(s) < rank(*first)) first = &s;
  }
  if (first == nullptr) return false;
  sequences_.clear(first->seq);
  metrics_.sequences_evicted.Increment();
  return true;
}

}  // namespace coppice::sched
