// Admission: which queued request starts, in which slot, from which prefix, and who makes room for it.
#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <cassert>
#include <limits>

#include "sched/queue_order.h"
#include "sched/scheduler.h"

namespace coppice::sched {
namespace {

// Waiting requests whose prompts are compared with what is held, each time a slot is free: the oldest.
constexpr std::size_t kComparedMax = 128;

}  // namespace

// Goes through the queue (queue_order.h). One whose leader is past the common point is always looked at; the others
// only if something has changed since the last time, so that a long queue costs nothing while streams run.
void Scheduler::admit() {
  const bool retry = std::exchange(retry_, false) || running() == 0;
  if (queue_.empty()) return;
  if (running() == slots().size()) {
    retry_ |= retry;
    return;
  }
  for (Active* const a : admission_order(retry)) {
    if (running() == slots().size()) {
      retry_ |= retry;  // the rest of the queue has not been looked at
      return;
    }
    const bool waiting = a->phase != Phase::queued;
    if (waiting ? !may_look_at(*a) : !retry) {
      if (a->waits_for_cells) return;
      continue;
    }
    a->phase = Phase::queued;
    const auto place = std::ranges::find(queue_, a, &std::unique_ptr<Active>::get);
    const RequestId id = a->request.id;
    switch (try_admit(*place)) {
      case Admission::admitted: note_overtaken(id); [[fallthrough]];
      case Admission::impossible: queue_.erase(place); break;
      case Admission::wait_for_blocks:
      case Admission::wait_for_prefix:
      case Admission::wait_for_slot: break;
      // Nobody overtakes a request that waits for cells: small ones would keep a big one waiting for ever.
      case Admission::wait_for_cells: return;
    }
  }
}

// All that wait. What is known of a prompt is looked up only if they are to be `tried`, and there is a choice; and only
// of the first ones, as each costs a comparison of all of its tokens.
std::vector<Active*> Scheduler::admission_order(bool tried) const {
  const std::size_t compared = tried && options_.overtake_limit > 0 && queue_.size() > 1 ? kComparedMax : 0;
  std::vector<Waiting> waiting;
  for (const auto& a : queue_) {
    const bool look = waiting.size() < compared;
    waiting.push_back({.to_compute = look ? tokens_to_compute(*a) : std::numeric_limits<TokenPos>::max(),
                       .overtaken = a->overtaken,
                       .waits_for_cells = a->waits_for_cells});
  }
  std::vector<Active*> order;
  for (const std::size_t i : queue_order(waiting, options_.overtake_limit)) order.push_back(queue_[i].get());
  return order;
}

// Of its prompt, what neither cells nor tiers have.
TokenPos Scheduler::tokens_to_compute(const Active& a) const {
  const Placement& p = a.request.placement;
  if (!p.cache_prompt) return a.input_length();
  const auto held = sequences().held(sequences().tree().common(p.ns, *a.input));
  return a.input_length() - std::max(std::ranges::max(held), a.hold.tokens);
}

void Scheduler::note_overtaken(RequestId by) {
  for (const auto& a : queue_) {
    if (a && a->request.id < by) ++a->overtaken;
  }
}

bool Scheduler::has_passed(const PrefixWait& wait) const {
  const Slot& s = slot(wait.slot);
  const bool computing = s.active && s.active->request.id == wait.leader && fills_prompt(s.active->phase);
  return !computing || held(s) >= wait.until;
}

// Takes the request out of `waiting` if it was admitted or can never be.
Scheduler::Admission Scheduler::try_admit(std::unique_ptr<Active>& waiting) {
  Active& a = *waiting;
  a.waits_for_cells = false;
  const Lookup lookup = look_up(*a.input, a.request.placement);
  const kv::SlotChoice choice = place(lookup);
  if (!choice.slot || (a.request.make_pool && pool_in_the_making())) return Admission::wait_for_slot;
  AdmissionFacts facts = facts_of(lookup, choice);
  if (a.hold.blocks_saved != tiering_.blocks_saved()) find_in_tiers(a, lookup.common);
  if (has_to_wait_for_disk(a, facts)) return Admission::wait_for_blocks;
  if (a.hold.tokens > facts.plan.reused) add_tiers(facts, tiering_.usable(a.hold));
  if (const auto wait = who_computes_more(lookup, facts.known())) {
    if (!a.report.coalesced) metrics_.requests_coalesced.Increment();
    a.report.coalesced = true;
    a.phase = Phase::waiting_for_prefix;
    a.wait = *wait;
    return Admission::wait_for_prefix;
  }
  if (auto fits = check_pool(a, facts.plan); !fits) {
    end_early(std::move(waiting), fits.error());
    return Admission::impossible;
  }
  if (!cells_suffice(a.input_length(), facts.plan)) {
    if (running() > 0) {
      a.waits_for_cells = true;
      return Admission::wait_for_cells;
    }
    if (residency_.give_up_a_pin()) return try_admit(waiting);
    const Error never = too_long_beside_pools(a.report.prompt_tokens, facts.plan);
    end_early(std::move(waiting), never);
    return Admission::impossible;
  }
  start(std::move(waiting), slot(*choice.slot), facts);
  return Admission::admitted;
}

// Cells that running requests still need for their prompts; they were admitted with them.
TokenPos Scheduler::reserved_cells() const {
  TokenPos reserved = 0;
  for (const Slot& s : slots_) {
    if (s.active) reserved += std::max(0, s.active->input_length() - held(s));
  }
  return reserved;
}

// Whether the prompt fits beside what is running or pinned if everything else were evicted, with a cell for the first
// token.
bool Scheduler::cells_suffice(TokenPos prompt_length, const kv::ReusePlan& plan) const {
  std::vector<kv::CellMap::Keep> keeps = residency_.pinned();
  for (const Slot& s : slots_) {
    if (s.active) keeps.push_back({s.seq(), held(s)});
  }
  if (plan.from) keeps.push_back({*plan.from, plan.reused});
  const TokenPos need = prompt_length - plan.reused + 1;
  return sequences().cells().kept_by(keeps) + need + reserved_cells() <= runner_.info().n_cells;
}

// Nothing runs, everything else can be evicted, and the prompt does not fit. The phrases are those of check().
Error Scheduler::too_long_beside_pools(TokenPos prompt_tokens, const kv::ReusePlan& plan) const {
  std::vector<kv::CellMap::Keep> keeps = residency_.pinned();
  if (plan.from) keeps.push_back({*plan.from, plan.reused});
  const TokenPos most = plan.reused + runner_.info().n_cells - sequences().cells().kept_by(keeps) - 1;
  return {ErrorKind::context_overflow,
          fmt::format("prompt is too long: {} tokens > {} maximum beside the pools, which hold {} of {} cells (maximum "
                      "context length is {} tokens)",
                      prompt_tokens, most, residency_.pinned_cells(), runner_.info().n_cells, most),
          "prompt"};
}

// Pools are made one after the other, so that two together cannot pass a limit that each alone keeps.
bool Scheduler::pool_in_the_making() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const Slot& s) { return s.active && s.active->request.make_pool; });
}

// Pools may hold three quarters of the cells: requests have to run beside them.
Result<void> Scheduler::check_pool(const Active& a, const kv::ReusePlan& plan) const {
  if (!a.request.make_pool) return {};
  const Placement& p = a.request.placement;
  const Pool* same_name = residency_.pools().find(p.ns, a.request.make_pool->name);
  if (same_name == nullptr && residency_.pools().full()) {
    return invalid(fmt::format("there are {} pools already, the most that this server can hold; delete one first",
                               residency_.pools().size()),
                   "name");
  }
  std::vector<kv::CellMap::Keep> keeps;
  for (const Pool* pool : residency_.pools().all()) {
    if (pool != same_name) keeps.push_back({pool->seq(), sequences().length(pool->seq())});
  }
  if (plan.from) keeps.push_back({*plan.from, plan.reused});
  const TokenPos pinned = sequences().cells().kept_by(keeps) + a.input_length() - plan.reused;
  const TokenPos pinned_max = residency_.pinned_cells_max();
  if (pinned <= pinned_max) return {};
  return invalid(fmt::format("a pool of {} tokens does not fit: pools would hold {} cells, and may hold {} of {}",
                             a.input_length(), pinned, pinned_max, runner_.info().n_cells),
                 "name");
}

void Scheduler::start(std::unique_ptr<Active> a, Slot& s, const AdmissionFacts& facts) {
  report_admission(*a, facts);
  const Placement& p = a->request.placement;
  if (Pool* pool = facts.plan.from ? residency_.pools().of(*facts.plan.from) : nullptr) {
    ++pool->uses;
    pool->last_use = clock_.now();
  }
  if (facts.plan.from) start_rent(*facts.plan.from);
  const SeqId seq = residency_.begin(s.id, facts.plan);
  a->lease = residency_.sequences().leases().take(seq);
  const auto session = a->session();
  const bool background = a->request.background;
  residency_.set_session(seq, session);
  // What comes out of the tiers was used before, though not in this sequence: for eviction.
  if (facts.restored > 0) residency_.sequences().notes(seq).uses = std::max(residency_.sequences().notes(seq).uses, 1);
  if (p.cache_prompt) residency_.sequences().promise(seq, p.ns, *a->input);
  if (session && !background) {
    slot_map_.commit(*session, s.id);
    if (p.cache_prompt) {
      residency_.sessions().begin(*session, a->request.prompt, p.parent_session, seq, clock_.now());
    }
  }
  a->restore_until = facts.plan.reused + facts.restored;
  a->phase = facts.restored > 0 || facts.plan.cells_only ? Phase::restoring : Phase::prefilling;
  a->checkpoints = checkpoints_of(*a, facts.known());
  a->checkpoints_done = 0;
  a->admitted = a->restored = clock_.now();
  if (!a->started && !background) {
    a->report.queued = a->admitted - a->arrived;
    metrics_.queue_seconds.Observe(to_s(a->report.queued));
  }
  a->started = true;
  a->report.slot = s.id;
  if (a->request.report_progress) {
    a->request.sink->on_progress({a->input_length(), a->report.reused(), a->report.reused(), Duration{0}});
  }
  s.active = std::move(a);
  if (s.active->phase == Phase::prefilling) pin_prefixes(*s.active);
  if (!background) spill_idle(s.active->input_length() - facts.known());
}

// What waiting requests will start from: given up last.
Residency::SeqSet Scheduler::wanted_sequences() const {
  Residency::SeqSet wanted;
  const auto want = [&](std::optional<SeqId> seq) {
    if (seq) wanted.set(static_cast<std::size_t>(seq->value));
  };
  for (const auto& a : queue_) {
    if (!a) continue;  // being admitted just now
    if (a->request.placement.shared_pool_slot) want(residency_.of(*a->request.placement.shared_pool_slot));
    if (const auto session = a->session()) {
      if (const auto* known = residency_.sessions().find(*session)) want(known->latest);
    }
  }
  return wanted;
}

// Background work takes nothing from anybody; make_background_room() gave it what it may have.
bool Scheduler::evict_one(TokenPos cells) {
  if (background_running()) return false;
  return residency_.evict_one(kv::Shortage::cells, cells, wanted_sequences());
}

}  // namespace coppice::sched
