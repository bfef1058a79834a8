// What the tiers have, back into the cells, and what the cells have, into the tiers (spec B18, B20).
#include <prometheus/counter.h>

#include <algorithm>

#include "obs/log.h"
#include "sched/scheduler.h"

namespace coppice::sched {
namespace {

// How long blocks are restored in one step while others wait for its end. One block at least.
constexpr std::chrono::milliseconds kRestoreAtOnce{20};

}  // namespace

// When it arrives, so that the disk reads while it waits, and again when it is about to run, if more was saved since.
// `common`: what every sequence has in common with its input.
void Scheduler::find_in_tiers(Active& a, const std::vector<TokenPos>& common) {
  const Placement& p = a.request.placement;
  if (!p.cache_prompt || a.without_tiers) return;
  a.hold = tiering_.find(p.ns, *a.input, std::ranges::max(sequences().held(common)));
}

// A request that waits, for a prefix or for its blocks, is looked at again only when it may go on.
bool Scheduler::may_look_at(Active& a) {
  if (a.phase == Phase::waiting_for_blocks) return !tiering_.waits_for_disk(a.hold) || disk_is_late(a);
  return has_passed(a.wait);
}

// Whether the disk has read nothing for too long, for anybody: it hangs, or is as good as that.
bool Scheduler::disk_is_late(Active& a) {
  const std::uint64_t read = tiering_.stats().disk_state.read_bytes;
  if (!a.disk_deadline || a.disk_bytes_seen != read) {
    a.disk_deadline = clock_.now() + options_.disk_wait_max;
    a.disk_bytes_seen = read;
  }
  return clock_.now() >= *a.disk_deadline;
}

bool Scheduler::has_to_wait_for_disk(Active& a, const AdmissionFacts& facts) {
  if (a.hold.tokens <= facts.plan.reused) return false;
  tiering_.prefetch(a.hold, cells_at_hand(facts, a.hold.tokens));
  if (!tiering_.waits_for_disk(a.hold)) return false;
  if (disk_is_late(a)) {
    obs::log_warn("the disk does not answer", "id={} waited_s={:.0f} reason=\"the request goes on without it\"",
                  a.request.id.value, to_s(clock_.now() - a.arrived));
    tiering_.leave_out_the_disk(a.hold);
    return false;
  }
  a.phase = Phase::waiting_for_blocks;
  return true;
}

std::optional<TimePoint> Scheduler::next_deadline() const {
  std::optional<TimePoint> next = residency_.next_expiry();
  const auto consider = [&](const Active* a, Phase phase) {
    if (a == nullptr || a->phase != phase || !a->disk_deadline) return;
    next = next ? std::min(*next, *a->disk_deadline) : *a->disk_deadline;
  };
  for (const auto& a : queue_) consider(a.get(), Phase::waiting_for_blocks);
  for (const Slot& s : slots_) consider(s.active.get(), Phase::restoring);
  if (!background_.empty()) consider(&background_.first(), Phase::waiting_for_blocks);
  return next;
}

bool Scheduler::waits_for_disk() const {
  if (!tiering_.on() || tiering_.has_work()) return false;
  if (running() > 0) return stalled_;
  if (queue_.empty() && !background_.empty()) {
    const Active& first = background_.first();
    return first.phase == Phase::waiting_for_blocks && tiering_.waits_for_disk(first.hold);
  }
  return std::all_of(queue_.begin(), queue_.end(), [](const auto& a) { return a->phase == Phase::waiting_for_blocks; });
}

// Of the prompt's first `until` tokens, those that a sequence can be given without restoring cells.
TokenPos Scheduler::cells_at_hand(const AdmissionFacts& facts, TokenPos until) const {
  return tiering_.has_checkpoints() ? cells_plan(facts, until).reused : facts.plan.reused;
}

kv::ReusePlan Scheduler::cells_plan(const AdmissionFacts& facts, TokenPos until) const {
  return kv::plan_cells(facts.query, until, [this](SeqId from) { return residency_.can_share_cells(from); });
}

// Has the tiers, which can bring a sequence to `tokens` tokens, go on where the plan ends, if that is faster than
// computing. Where a checkpoint does it, the plan becomes another one: any cells will do, whoever holds them.
void Scheduler::add_tiers(AdmissionFacts& facts, TokenPos tokens) const {
  const TokenPos gain = tokens - facts.plan.reused;
  if (!tiering_.has_checkpoints()) {
    if (costs_.worth_restoring(gain, tiering_.block_span(facts.plan.reused, tokens), sequences().cells().used()))
      facts.restored = gain;
    return;
  }
  if (gain <= 0) return;
  const kv::ReusePlan cells = cells_plan(facts, tokens);
  if (!costs_.worth_restoring(gain, tiering_.block_span(cells.reused, tokens), sequences().cells().used())) return;
  facts.plan = cells;
  facts.restored = tokens - cells.reused;
}

// Blocks that are in host memory. When a chain is longer than that has room for, its requests wait for the disk here.
void Scheduler::restore_some() {
  const auto restoring = [](const Slot& s) { return s.active && s.active->phase == Phase::restoring; };
  const bool others_wait =
      std::any_of(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.active && !restoring(s); });
  const TimePoint began = clock_.now();
  stalled_ = false;
  for (bool any = true; any;) {
    any = false;
    bool reading = false;
    Slot* without_room = nullptr;
    for (Slot& s : slots_) {
      if (!restoring(s)) continue;
      switch (tiering_.prepare(s.seq(), s.active->hold, s.active->restore_until)) {
        case Tiering::Next::reading:
          if (!disk_is_late(*s.active)) {
            reading = true;
            continue;
          }
          end_restoring(s);
          break;
        case Tiering::Next::no_room: without_room = &s; continue;
        case Tiering::Next::gone: end_restoring(s); break;
        case Tiering::Next::ready:
          if (!restore_block(s)) end_restoring(s);
          break;
      }
      any = true;
      if (others_wait && clock_.now() - began >= kRestoreAtOnce) return;
    }
    // Those that have blocks go on and make room; if nobody has any, one computes the rest.
    if (!any && !reading && without_room != nullptr) {
      end_restoring(*without_room);
      any = true;
    }
    stalled_ = reading && !any;
  }
  const bool computing =
      std::any_of(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.active && !restoring(s); });
  stalled_ = stalled_ && !computing;
}

// False when no more is to be had.
bool Scheduler::restore_block(Slot& s) {
  Active& a = *s.active;
  const TokenPos room = tiering_.cells_needed(s.seq(), a.hold, a.restore_until);
  while (sequences().free_cells() < room && evict_one(room - sequences().free_cells())) {
  }
  if (sequences().free_cells() < room) return false;
  const TokenPos begin = held(s);
  a.disk_deadline.reset();
  const std::optional<TokenPos> gained = tiering_.restore(s.seq(), a.hold, a.restore_until);
  if (!gained) return false;
  if (a.report.pauses == 0) {
    const TokenPos host = std::clamp(a.hold.tokens_in_host - begin, 0, *gained);
    a.report.reused_host += host;
    a.report.reused_disk += *gained - host;
    if (a.request.background) return held(s) < a.restore_until || !sequences().resumable(s.seq());
    metrics_.prompt_tokens_reused[3]->Increment(host);
    metrics_.prompt_tokens_reused[4]->Increment(*gained - host);
  }
  return held(s) < a.restore_until || !sequences().resumable(s.seq());
}

void Scheduler::end_restoring(Slot& s) {
  if (!sequences().resumable(s.seq())) return restart_without_tiers(s);
  Active& a = *s.active;
  a.phase = Phase::prefilling;
  a.hold = {};
  a.restored = clock_.now();
  a.report.restore += a.restored - a.admitted;
  retry_ = true;
  pin_prefixes(a);
  if (a.report.pauses > 0) return;
  const Report& report = a.report;
  const TokenPos in_cells = report.reused_slot + report.reused_donor + report.reused_pool;
  a.report.source =
      source_of({.from = {}, .reused = in_cells, .source = report.source}, report.reused_host, report.reused_disk);
}

// Cells without a state that fits are of no use: the request begins again, with what the cells of others give it.
void Scheduler::restart_without_tiers(Slot& s) {
  if (&s == &lane()) return end_background(Drop::failed);
  auto a = release(s);
  a->without_tiers = true;
  if (a->report.pauses == 0) {
    Report& report = a->report;
    report.reused_slot = report.reused_donor = report.reused_pool = report.reused_host = report.reused_disk = 0;
    a->started = false;
  }
  obs::log_info("request starts again without the tiers", "id={}", a->request.id.value);
  enqueue(std::move(a));
}

// Turns of a session survive a restart; a prompt that came once does so only when others share it.
bool Scheduler::durable(const Active& a) { return a.session().has_value() || a.request.make_pool.has_value(); }

// What it computed, once that fills another block.
void Scheduler::keep_filled(Active& a, SeqId seq) {
  const TokenPos length = sequences().length(seq), n = tiering_.block_tokens();
  if (!tiering_.on() || !a.request.placement.cache_prompt || length < a.keep_at) return;
  a.keep_at = (length / n + 1) * n;
  if (length < n) return;
  const bool in_prompt = length <= a.input_length();
  tiering_.keep(seq, in_prompt ? a.input : std::make_shared<const Tokens>(sequences().tokens(seq)), length, durable(a),
                false);
}

// All of it, at the end of its turn.
void Scheduler::keep_end(const Active& a, SeqId seq) {
  if (!tiering_.on() || !a.request.placement.cache_prompt || sequences().length(seq) == 0) return;
  const TokenPos length = sequences().length(seq);
  tiering_.keep(seq, std::make_shared<const Tokens>(sequences().tokens(seq)), length, durable(a), true);
}

}  // namespace coppice::sched
