#include "sched/scheduler.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <cassert>
#include <limits>

#include "obs/log.h"

namespace coppice::sched {
namespace {

// How long what an evicted sequence loses is saved while other requests wait for the step's end; some blocks at least.
// With nobody else running all is: whoever needs the room waits less for that than somebody would for computing it
// again.
constexpr std::chrono::milliseconds kEvictedSavedFor{20};

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, engine::Runner& runner, const engine::Tokenizer& tokenizer,
                     const Clock& clock, obs::Metrics& metrics)
    : options_(options),
      runner_(runner),
      tokenizer_(tokenizer),
      clock_(clock),
      metrics_(metrics),
      residency_({.n_slots = options.n_slots,
                  .sessions = options.sessions,
                  .pools_max = options.pools_max,
                  .eviction = options.eviction,
                  .on_forgotten = [this](const kv::SessionKey& key) { session_keeper_.forget(key); },
                  .on_loss = [this](SeqId seq, TokenPos left) { tiering_.keep_now(seq, left, save_at_once()); }},
                 runner, clock, metrics),
      costs_(options.spill_spread_min),
      tiering_(options.tier, residency_.sequences(), runner, costs_, clock, metrics),
      session_keeper_(tiering_.on() ? options.tier : TierOptions{},
                      tiering_.has_checkpoints() ? tier::BlockKind::checkpoint : tier::BlockKind::cells, clock),
      background_(options.background_limit) {
  const auto& info = runner.info();
  assert(options.n_slots >= 1 && options.n_slots <= info.n_seqs);
  assert(info.n_batch >= options.n_slots);  // one token for each decoding slot must fit into one step
  if (options_.step_tokens_max <= 0) options_.step_tokens_max = info.n_ubatch;
  options_.step_tokens_max = std::min(options_.step_tokens_max, info.n_batch);
  for (std::int32_t i = 0; i <= options.n_slots; ++i) slots_.push_back({SlotId{i}, -1, nullptr});
  metrics_.slots_total.Set(options.n_slots);
  metrics_.kv_cells_total.Set(info.n_cells);
  session_keeper_.load(residency_.sessions());
  publish_gauges();
}

Scheduler::~Scheduler() = default;

Duration Scheduler::save_at_once() const { return running() > 1 ? kEvictedSavedFor : Duration::max(); }

Result<void> Scheduler::check(const Request& request) const {
  const auto known = [&](SlotId id) { return id.value >= 0 && id.value < options_.n_slots; };
  const auto unknown_slot = [&](SlotId id, const char* param) {
    return invalid(fmt::format("there is no slot {}: slots are 0 to {}", id.value, options_.n_slots - 1), param);
  };
  const Placement& p = request.placement;
  if (p.id_slot && !known(*p.id_slot)) return unknown_slot(*p.id_slot, "id_slot");
  if (p.shared_pool_slot && !known(*p.shared_pool_slot)) return unknown_slot(*p.shared_pool_slot, "shared_pool_slot");
  if (request.prompt->empty()) return invalid("the prompt is empty", "prompt");

  // One cell must be left for the first generated token; the phrases are the ones that agent clients look for.
  const TokenPos prompt_max = runner_.info().n_cells - 1;
  if (static_cast<TokenPos>(request.prompt->size()) > prompt_max) {
    return fail(ErrorKind::context_overflow,
                fmt::format("prompt is too long: {} tokens > {} maximum (maximum context length is {} tokens)",
                            request.prompt->size(), prompt_max, prompt_max),
                "prompt");
  }
  return {};
}

void Scheduler::submit(Request request) {
  auto a = std::make_unique<Active>(std::move(request), clock_.now());
  a->report.session = a->request.placement.session;
  a->report.session_rule = a->request.placement.session_rule;
  a->report.prompt_tokens = a->input_length();
  if (a->request.background) return submit_background(std::move(a));
  if (const auto old = a->request.replaces) take_place_of(*old, *a);
  if (const auto session = a->session()) give_up_background(*session, Drop::moved_on);
  preempt_background();
  enqueue(std::move(a));
  publish_gauges();
}

void Scheduler::take_place_of(RequestId old, Active& a) {
  if (const Slot* s = slot_of(old)) {
    a.replaced_begin = s->active->report.reused();
    a.replaced_end = a.replaced_begin + s->active->report.computed;
  }
  cancel(old);
}

// Keeps the queue in order of arrival: a paused request comes back to the place that it had.
void Scheduler::enqueue(std::unique_ptr<Active> a) {
  a->phase = Phase::queued;
  a->waits_for_cells = false;
  retry_ = true;
  if (tiering_.on()) find_in_tiers(*a, sequences().tree().common(a->request.placement.ns, *a->input));
  const auto later =
      std::find_if(queue_.begin(), queue_.end(), [&](const auto& other) { return other->request.id > a->request.id; });
  queue_.insert(later, std::move(a));
}

void Scheduler::cancel(RequestId id) {
  const Error gone{ErrorKind::cancelled, "the client went away", {}};
  const auto waiting = std::find_if(queue_.begin(), queue_.end(), [&](const auto& a) { return a->request.id == id; });
  if (waiting != queue_.end()) {
    auto a = std::move(*waiting);
    queue_.erase(waiting);
    end_early(std::move(a), gone);
  } else if (cancel_background(id)) {
    return;
  } else if (Slot* running = slot_of(id)) {
    end_early(release(*running), gone);
  }
  publish_gauges();
}

void Scheduler::conclude(RequestId id) {
  const auto paused = std::find_if(queue_.begin(), queue_.end(),
                                   [&](const auto& a) { return a->request.id == id && !a->generated.empty(); });
  if (paused != queue_.end()) {
    auto a = std::move(*paused);
    queue_.erase(paused);
    TextDelta tail{.text = a->text.flush()};
    deliver(std::move(a), StopKind::enough, std::move(tail));
  } else if (Slot* s = slot_of(id); s != nullptr && !s->active->generated.empty()) {
    TextDelta tail{.text = s->active->text.flush()};
    finish(*s, StopKind::enough, std::move(tail));
  }
}

void Scheduler::fail_all(const Error& error, bool queued_only) {
  if (background_running()) end_background(Drop::failed);
  for (auto& a : background_.take_all()) drop_background(std::move(a), Drop::failed);
  for (auto& a : std::exchange(queue_, {})) end_early(std::move(a), error);
  for (Slot& s : slots()) {
    if (s.active && !queued_only) end_early(release(s), error);
  }
  publish_gauges();
}

void Scheduler::unpin_expired() {
  if (!residency_.unpin_expired()) return;
  retry_ = true;
  publish_gauges();
}

bool Scheduler::step() {
  unpin_expired();
  const std::size_t waiting = queue_.size();
  const bool saved = tiering_.work(running() > 0);
  admit();
  if (running() == 0 && queue_.empty()) begin_background();
  if (running() == 0) return saved;
  if (on_change_ && queue_.size() != waiting) on_change_();  // or they would count as waiting until the step's end
  restore_some();
  const TimePoint began = clock_.now();
  if (build_batch()) {
    const engine::DecodeStatus status = runner_.decode(batch_);
    metrics_.decode_steps.Increment();
    if (status == engine::DecodeStatus::ok) {
      note_step(clock_.now() - began);
      note_evaluated();
      if (background_running()) {
        note_background(lane().seq(), static_cast<TokenPos>(batch_.size()), clock_.now() - began);
      }
      sample_all();
    } else {
      end_with_failed_batch(status);
    }
  }
  metrics_.step_seconds.Observe(to_s(clock_.now() - began));
  publish_gauges();
  return true;
}

std::size_t Scheduler::running() const {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return !!s.active; }));
}

Scheduler::Slot* Scheduler::slot_of(RequestId id) {
  const auto it =
      std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.active && s.active->request.id == id; });
  return it == slots_.end() ? nullptr : &*it;
}
const Scheduler::Slot* Scheduler::slot_of(RequestId id) const { return const_cast<Scheduler*>(this)->slot_of(id); }

// Takes the request out of its slot. What it computed stays there as the slot's idle prefix, unless it asked for no
// trace.
std::unique_ptr<Active> Scheduler::release(Slot& s) {
  const SeqId seq = s.seq();
  auto a = std::move(s.active);
  a->lease.release();
  a->hold = {};
  start_rent(seq);
  s.last_used = ++releases_;
  if (a->request.placement.cache_prompt && sequences().resumable(seq)) {
    keep_end(*a, seq);
    if (const auto session = a->session()) {
      if (const auto* known = residency_.sessions().find(*session)) session_keeper_.keep(*known);
    }
    residency_.retire(seq);
  } else {
    residency_.drop(seq);
  }
  retry_ = true;
  return a;
}

void Scheduler::finish(Slot& s, StopKind stop, TextDelta tail) {
  if (&s == &lane()) return deliver_background(leave_lane());
  auto a = release(s);
  if (a->request.make_pool) pin(*a, s.id);
  if (a->phase == Phase::decoding) a->report.decode += clock_.now() - a->prefilled;
  deliver(std::move(a), stop, std::move(tail));
}

// The last event of a request that is in no slot any more.
void Scheduler::deliver(std::unique_ptr<Active> a, StopKind stop, TextDelta tail) {
  Report& report = a->report;
  metrics_.requests_finished.Increment();
  metrics_.tokens_predicted.Increment(report.predicted);
  costs_.note_answer(report.predicted);
  obs::log_info("request done",
                "id={} slot={} session_rule={} prompt={} reused={} source={} computed={} reason={} predicted={} "
                "queue_ms={:.1f} prefill_ms={:.1f} decode_ms={:.1f}",
                a->request.id.value, report.slot.value, report.session_rule.empty() ? "-" : report.session_rule,
                report.prompt_tokens, report.reused(), kv::name(report.source), report.computed,
                report.reason == kv::MissReason::none ? "-" : kv::name(report.reason), report.predicted,
                to_ms(report.queued), to_ms(report.prefill), to_ms(report.decode));
  publish_gauges();
  if (on_change_) on_change_();
  a->request.sink->on_finished({.stop = stop,
                                .stop_word = a->text.stop_word().value_or(""),
                                .tail = std::move(tail),
                                .report = std::move(report),
                                .generated = std::move(a->generated),
                                .end_token = a->end_token});
}

void Scheduler::pin(const Active& a, SlotId slot) {
  const PoolSpec& spec = *a.request.make_pool;
  const NamespaceId ns = a.request.placement.ns;
  residency_.pin(slot, ns, spec);
  if (spec.ttl.count() > 0) {
    tiering_.forget_pool(ns, spec.name);
  } else {
    tiering_.record_pool(ns, spec.name, *a.request.prompt);
  }
}

void Scheduler::end_early(std::unique_ptr<Active> a, const Error& error) {
  switch (error.kind) {
    case ErrorKind::cancelled: metrics_.requests_cancelled.Increment(); break;
    case ErrorKind::unavailable: metrics_.requests_refused.Increment(); break;
    default: metrics_.requests_failed.Increment();
  }
  obs::log_info("request ended early", "id={} predicted={} why=\"{}\"", a->request.id.value, a->report.predicted,
                error.message);
  a->request.sink->on_failed(error);
}

Snapshot Scheduler::snapshot() const {
  const kv::CellMap& cells = sequences().cells();
  Snapshot snapshot{.slots = {},
                    .cells_used = cells.used(),
                    .cells_total = runner_.info().n_cells,
                    .cells_pinned = residency_.pinned_cells(),
                    .sequences_parked = residency_.n_parked(),
                    .sequences_total = sequences().count(),
                    .queued = queue_.size(),
                    .queue_limit = options_.queue_limit};
  for (const Slot& s : slots()) {
    SlotInfo info{.id = s.id, .busy = !!s.active, .held = residency_.held(s.id)};
    if (const auto seq = residency_.of(s.id)) info.exclusive = cells.exclusive(*seq);
    if (const auto* session = slot_map_.session_of(s.id)) info.session = session->name;
    if (s.active) {
      info.request = s.active->request.id;
      info.prompt_tokens = s.active->report.prompt_tokens;
      info.processed = std::min(info.held, info.prompt_tokens);
      info.predicted = s.active->report.predicted;
    }
    snapshot.slots.push_back(std::move(info));
  }
  return snapshot;
}

void Scheduler::publish_gauges() {
  metrics_.kv_cells_used.Set(sequences().cells().used());
  metrics_.kv_cells_pinned.Set(residency_.pinned_cells());
  metrics_.sequences_parked.Set(residency_.n_parked());
  metrics_.pools.Set(static_cast<double>(residency_.pools().size()));
  metrics_.prefix_pins.Set(static_cast<double>(residency_.pins().size()));
  metrics_.slots_busy.Set(static_cast<double>(running() - (background_running() ? 1 : 0)));
  metrics_.requests_queued.Set(static_cast<double>(queue_.size()));
  metrics_.sessions_known.Set(static_cast<double>(residency_.sessions().size()));
}

void Scheduler::check_invariants() const {
  residency_.check_invariants();
  tiering_.check_invariants();
  [[maybe_unused]] std::int64_t leases =
      static_cast<std::int64_t>(residency_.pools().size() + residency_.pins().size());
  for (const Slot& s : slots_) {
    if (!s.active) continue;
    ++leases;
    const Active& a = *s.active;
    assert(fills_prompt(a.phase) || a.phase == Phase::decoding);
    assert(residency_.of(s.id) == s.seq());
    assert(held(s) <= static_cast<TokenPos>(a.request.prompt->size() + a.generated.size()));
    if (!a.request.placement.cache_prompt) continue;
    const Tokens seen = sequences().tree().tokens(s.seq(), 0, sequences().promised(s.seq()));
    const Tokens& prompt = *a.request.prompt;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      assert(seen[i] == (i < prompt.size() ? prompt[i] : a.generated.at(i - prompt.size())));
    }
  }
  assert(!background_running() || (running() == 1 && queue_.empty()));
  assert(leases == sequences().leases().total());
  for (const auto& a : queue_) {
    assert(!fills_prompt(a->phase) && a->phase != Phase::decoding);
    assert(!a->lease);
  }
}

}  // namespace coppice::sched
