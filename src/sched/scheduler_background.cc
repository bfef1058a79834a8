// Work that nobody waits for (spec B25): prompts that are going to come are computed while nothing else is to be done.
// docs/idle-prefill.md says what that is good for.
//
//   submit --> BackgroundQueue --> begin_background(): nobody runs, nobody waits --> the lane --> deliver
//                   ^                                                                   |
//                   `------------------- preempt_background(): a request arrives -------'
//
// The lane is a slot of its own that no request can be given. So it takes no part in slot choice (spec A1-A3), and what
// was computed in it is parked when it ends: anyone can go on from there, as from any other sequence (spec B15). While
// it runs nothing else does. A request that arrives takes its place before the next step, so it waits for the end of
// one step at most, and those are short: a part of the prompt that takes some 50 ms by what was measured.
// It takes cells that are free, or that idle sequences have which host memory has as well; nobody loses KV to a guess.
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <algorithm>

#include "obs/log.h"
#include "sched/scheduler.h"

namespace coppice::sched {
namespace {

constexpr TokenPos kStepTokensMin = 16;
constexpr TokenPos kStepTokensUnmeasured = 64;

}  // namespace

void Scheduler::submit_background(std::unique_ptr<Active> a) {
  a->request.placement.history = a->input_length();  // it ends where a later prompt goes on
  if (const auto key = a->session()) give_up_background(*key, Drop::superseded);
  drop_background(background_.push(std::move(a)), Drop::full);
}

// `a` may be null.
void Scheduler::drop_background(std::unique_ptr<Active> a, Drop why) {
  metrics_.background_queued.Set(static_cast<double>(background_.size()));
  if (a == nullptr) return;
  metrics_.background(why).Increment();
  obs::log_debug("background work given up", "id={} why={}", a->request.id.value, static_cast<int>(why));
  a->request.sink->on_failed({ErrorKind::cancelled, "background work was given up", {}});
}

// Out of the lane. Its KV stays, parked.
std::unique_ptr<Active> Scheduler::leave_lane() {
  auto a = release(lane());
  residency_.leave(lane().id);
  return a;
}

// It goes on from where it is when nobody waits any more.
void Scheduler::preempt_background() {
  if (!background_running()) return;
  metrics_.background_preempted.Increment();
  auto a = leave_lane();
  a->phase = Phase::queued;
  drop_background(background_.push_first(std::move(a)), Drop::full);
}

// All of the session's.
void Scheduler::give_up_background(const kv::SessionKey& key, Drop why) {
  if (background_running() && lane().active->session() == key) end_background(why);
  for (auto& older : background_.take_session(key)) drop_background(std::move(older), why);
}

void Scheduler::end_background(Drop why) { drop_background(leave_lane(), why); }

bool Scheduler::cancel_background(RequestId id) {
  auto a = background_running() && lane().active->request.id == id ? leave_lane() : background_.take(id);
  if (a == nullptr) return false;
  drop_background(std::move(a), Drop::moved_on);
  return true;
}

void Scheduler::deliver_background(std::unique_ptr<Active> a) {
  metrics_.background_queued.Set(static_cast<double>(background_.size()));
  obs::log_info("background work done", "id={} session=\"{}\" prompt={} reused={} computed={}", a->request.id.value,
                a->report.session, a->report.prompt_tokens, a->report.reused(), a->report.computed);
  if (on_change_) on_change_();
  Finished finished;
  finished.report = a->report;
  a->request.sink->on_finished(std::move(finished));
}

// Whether a request with this beginning would find all of it, and without the disk.
bool Scheduler::is_held(const Active& a, const Lookup& lookup) const {
  const std::vector<TokenPos> held = sequences().held(lookup.common);
  for (std::int32_t i = 0; i < sequences().count(); ++i) {
    const SeqId seq{i};
    if (held[static_cast<std::size_t>(i)] == a.input_length() &&
        runner_.can_resume(seq, sequences().length(seq), a.input_length())) {
      return true;
    }
  }
  Tokens longer = *a.input;
  longer.push_back(0);  // a lookup leaves the last token out
  TokenPos in_host = 0;
  tiering_.known(a.request.placement.ns, longer, &in_host);
  return in_host == a.input_length();
}

// Frees cells of idle sequences that host memory has too, and one sequence to work in: parked ones first, then slots',
// as a slot that still holds its conversation is chosen by it; of each kind the ones used longest ago. `from` stays.
bool Scheduler::make_background_room(TokenPos cells, std::optional<SeqId> from) {
  const auto enough = [&] { return sequences().free_cells() >= cells && sequences().in_use() < sequences().count(); };
  while (!enough()) {
    std::optional<SeqId> oldest;
    const auto order = [&](SeqId seq) {
      return std::pair(!residency_.is_parked(seq), sequences().notes(seq).last_touch);
    };
    for (std::int32_t i = 0; i < sequences().count(); ++i) {
      const SeqId seq{i};
      if (!sequences().in_use(seq) || sequences().leases().held(seq) || seq == from || !tiering_.holds(seq)) continue;
      if (!oldest || order(seq) < order(*oldest)) oldest = seq;
    }
    if (!oldest) return false;
    metrics_.sequences_spilled.Increment();
    metrics_.cells_spilled.Increment(sequences().cells().exclusive(*oldest));
    residency_.drop(*oldest);
  }
  return true;
}

// REQUIRES: nobody runs, nobody waits.
void Scheduler::begin_background() {
  while (!background_.empty() && !background_running()) {
    Active& first = background_.first();
    if (first.phase == Phase::waiting_for_blocks && !may_look_at(first)) return;
    auto a = background_.take_first();
    a->phase = Phase::queued;
    const Lookup lookup = look_up(*a->input, a->request.placement);
    if (is_held(*a, lookup)) {
      deliver_background(std::move(a));
      continue;
    }
    AdmissionFacts facts = facts_of(lookup, {.rule = kv::SlotRule::wait, .slot = lane().id});
    find_in_tiers(*a, lookup.common);
    if (has_to_wait_for_disk(*a, facts)) {
      drop_background(background_.push_first(std::move(a)), Drop::full);
      return;
    }
    if (a->hold.tokens > facts.plan.reused) add_tiers(facts, tiering_.usable(a->hold));
    // Blocks come as a whole, and the last one may be of use in part only.
    const TokenPos cells = a->input_length() - facts.plan.reused + tiering_.block_tokens();
    if (!make_background_room(cells, facts.plan.from)) {
      drop_background(std::move(a), Drop::no_room);
      continue;
    }
    start(std::move(a), lane(), facts);
    if (facts.plan.from) take_over_prepared(*facts.plan.from, facts.plan.reused);
  }
}

// So many that a request that arrives just now waits no longer than `background_step`. A token of a small step costs
// more than the average one does, hence the look at the lane's own steps.
TokenPos Scheduler::background_step_tokens() const {
  const double each_s = std::max(costs_.computing_s(1, sequences().cells().used()), background_token_s_);
  const double fit = each_s > 0 ? to_s(options_.background_step) / each_s : kStepTokensUnmeasured;
  return static_cast<TokenPos>(std::clamp<double>(fit, kStepTokensMin, options_.step_tokens_max));
}

// What the lane's step computed. The tokens are marked in the sequence, so that it is known who uses them.
void Scheduler::note_background(SeqId seq, TokenPos computed, Duration took) {
  Sequences::Notes& notes = residency_.sequences().notes(seq);
  const TokenPos end = sequences().length(seq);
  if (notes.prepared_end != end - computed) notes.prepared_begin = end - computed;
  notes.prepared_end = end;
  const double each_s = to_s(took) / std::max(computed, 1);
  background_token_s_ = background_token_s_ == 0 ? each_s : (background_token_s_ + each_s) / 2;
  metrics_.background(obs::Prepared::computed).Increment(computed);
  metrics_.background_step_seconds.Observe(to_s(took));
}

// What the lane's sequence shares of another one, and nobody has used yet, is marked in the lane's from here on.
void Scheduler::take_over_prepared(SeqId from, TokenPos reused) {
  if (from == lane().seq()) return;
  Sequences::Notes &donor = residency_.sequences().notes(from), &own = residency_.sequences().notes(lane().seq());
  if (donor.prepared_begin >= reused || donor.prepared_end < reused) return;
  own.prepared_begin = donor.prepared_begin;
  own.prepared_end = donor.prepared_begin = reused;
}

// How many of the first `reused` tokens of the sequence were prepared and not used yet.
TokenPos Scheduler::prepared_of(SeqId from, TokenPos reused) const {
  const Sequences::Notes& notes = sequences().notes(from);
  return std::max(0, std::min(notes.prepared_end, reused) - notes.prepared_begin);
}

// The same, and they are used now.
TokenPos Scheduler::use_prepared(SeqId from, TokenPos reused) {
  const TokenPos used = prepared_of(from, reused);
  if (used == 0) return 0;
  Sequences::Notes& notes = residency_.sequences().notes(from);
  notes.prepared_begin += used;
  metrics_.background(obs::Prepared::used).Increment(used);
  return used;
}

}  // namespace coppice::sched
