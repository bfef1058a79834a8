// From the cells into the tiers: behind, a few blocks a step, and at once where they would be lost.
#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "sched/tiering.h"
#include "tier/payload.h"

namespace coppice::sched {
namespace {

// Jobs that wait. Each is one end of a prompt or a turn; with more, saving cannot keep up, and the oldest are given up.
constexpr std::size_t kJobsMax = 256;
// What one step saves behind while nobody waits: one block, and more of them only while that takes next to no time.
constexpr int kBlocksAtOnce = 4;
constexpr std::chrono::milliseconds kSaveAtOnce{2};
// While requests run: of the time that passes, one part in so many.
constexpr int kSaveShare = 16;
// Blocks that one call looks at without saving any: comparing costs a hash of their tokens.
constexpr int kKnownBlocksAtOnce = 128;

// Raises `worst` to the time that passes until its end.
class Stall {
 public:
  Stall(const Clock& clock, Duration& worst) : clock_(clock), worst_(worst), began_(clock.now()) {}
  ~Stall() { worst_ = std::max(worst_, clock_.now() - began_); }
  Stall(const Stall&) = delete;
  Stall& operator=(const Stall&) = delete;

 private:
  const Clock& clock_;
  Duration& worst_;
  TimePoint began_;
};

}  // namespace

// Of the sequence's first `length` tokens, from the block on that `begin` is in: what comes before is in cells or
// saved.
Tiering::Job Tiering::job_of(SeqId seq, std::shared_ptr<const Tokens> tokens, TokenPos begin, TokenPos length) const {
  const NamespaceId ns = sequences_.namespace_of(seq);
  Job job{.ns = ns, .tokens = std::move(tokens), .length = length, .parent = root(ns)};
  const TokenPos block_begin = begin / block_tokens_ * block_tokens_;
  if (const auto parent = cell_blocks_->before(seq, block_begin)) {
    job.parent = *parent;
    job.next = block_begin;
  }
  return job;
}

// The same for what is there now and not later: at the cost of others, and to its end.
Tiering::Job Tiering::job_at_once(SeqId seq, TokenPos begin, TokenPos length) const {
  Job job = job_of(seq, std::make_shared<const Tokens>(sequences_.tokens(seq)), begin, length);
  job.whole = true;
  job.room = tier::Tiers::Room::make;
  return job;
}

// Whether `longer` is to save what this one is, and more.
bool Tiering::Job::goes_on(const Job& longer) const {
  return ns == longer.ns && length <= longer.length &&
         (tokens == longer.tokens || std::ranges::equal(all(), longer.all().first(all().size())));
}

void Tiering::keep(SeqId seq, std::shared_ptr<const Tokens> tokens, TokenPos length, bool durable, bool whole) {
  if (!on()) return;
  // Full blocks that the sequence has and the tiers too need not be looked at; the last one may be a checkpoint's.
  const TokenPos known = cell_blocks_->first_unsaved(seq, durable);
  Job job = job_of(seq, std::move(tokens), std::min(known, std::max(length - 1, 0)), length);
  job.durable = durable;
  job.whole = whole;
  // A newer end of the same conversation takes the place of an older one, and goes on where that is. A checkpoint is of
  // use at its own end only.
  for (Job& older : jobs_) {
    if ((older.whole && has_checkpoints() && older.length < length) || !older.goes_on(job)) continue;
    job.durable |= older.durable;
    if (older.durable == job.durable && older.next > job.next) {
      job.parent = older.parent;
      job.next = older.next;
    }
    older = std::move(job);
    return;
  }
  if (jobs_.size() >= kJobsMax) {
    jobs_.pop_front();
    ++jobs_ended_;
    metrics_.tier_unsaved.Increment();
  }
  jobs_.push_back(std::move(job));
  ++jobs_begun_;
}

std::optional<SeqId> Tiering::holder(NamespaceId ns, const Tokens& tokens, TokenPos end, tier::BlockKind kind) const {
  const std::vector<TokenPos> held = sequences_.held(sequences_.tree().common(ns, tokens));
  for (std::int32_t i = 0; i < sequences_.count(); ++i) {
    const SeqId seq{i};
    if (held[static_cast<std::size_t>(i)] < end) continue;
    if (kind == tier::BlockKind::cells || runner_.can_resume(seq, sequences_.length(seq), end)) return seq;
  }
  return std::nullopt;
}

Tiering::Saved Tiering::save_block(const Job& job, TokenPos end, const tier::BlockId& id) {
  const tier::BlockKind kind = tier::kind_of(id);
  const auto room = job.durable ? tier::Tiers::Room::make : job.room;
  if (room == tier::Tiers::Room::as_is && !tiers_->has_room()) return Saved::left;
  const auto seq = holder(job.ns, *job.tokens, end, kind);
  if (!seq) return Saved::failed;  // it is gone already
  const TimePoint began = clock_.now();
  tier::Payload state = tier::make_payload(
      runner_.save(*seq, job.next, end,
                   kind == tier::BlockKind::checkpoint ? engine::SaveKind::checkpoint : engine::SaveKind::cells));
  const Duration took = clock_.now() - began;
  metrics_.tier_save_seconds.Observe(to_s(took));
  if (kind == tier::BlockKind::cells && end - job.next == block_tokens_) costs_.note_saved(end - job.next, took);
  if (state->empty()) return Saved::failed;
  tier::Block block{.id = id,
                    .parent = job.parent,
                    .begin = job.next,
                    .tokens = Tokens(job.tokens->begin() + job.next, job.tokens->begin() + end),
                    .state = std::move(state)};
  if (!tiers_->put(std::move(block), job.durable, room))
    return room == tier::Tiers::Room::make ? Saved::failed : Saved::left;
  ++blocks_saved_;
  return Saved::saved;
}

// Goes on until one block was saved. False when the job is done. Where a chain ends in a checkpoint, that takes the
// last block's place, be it full or not.
bool Tiering::advance(Job& job) {
  for (int known = 0; known < kKnownBlocksAtOnce; ++known) {
    const TokenPos end = std::min(job.next + block_tokens_, job.length);
    const bool full = end == job.next + block_tokens_, last = end == job.length && job.whole;
    if (end == job.next || (!full && !last)) return false;
    const auto span = job.all();
    const auto n = static_cast<std::size_t>(end - job.next);
    const tier::BlockKind kind = last ? last_ : tier::BlockKind::cells;
    const tier::BlockId id = tier::id_of(job.parent, span.subspan(static_cast<std::size_t>(job.next), n), kind);
    const Saved saved = [&] {
      if (!tiers_->contains(id)) return save_block(job, end, id);
      if (job.durable) tiers_->want_durable(id);
      return Saved::known;
    }();
    if (saved == Saved::left) return false;
    if (saved == Saved::failed) {
      metrics_.tier_unsaved.Increment();
      return false;
    }
    job.parent = id;
    job.next = end;
    if (!full || last) return false;
    if (saved == Saved::saved) return true;
  }
  return true;
}

void Tiering::checkpoint(SeqId seq, TokenPos at, bool durable) {
  assert(has_checkpoints());
  const Stall stall(clock_, stalls_.save_worst);
  Job job = job_at_once(seq, at - 1, at);
  run(job, Duration::max());
  tiers_->thin_checkpoints(root(job.ns), job.all());
  if (durable) keep(seq, job.tokens, at, true, true);
}

// Whether it came to the job's end, saved or not.
bool Tiering::run(Job& job, Duration limit) {
  const Stall stall(clock_, stalls_.save_worst);
  const TimePoint began = clock_.now();
  for (int i = 0; i < kBlocksAtOnce || clock_.now() - began <= limit; ++i) {
    if (!advance(job)) return true;
  }
  return false;
}

void Tiering::keep_now(SeqId seq, TokenPos length, Duration limit) {
  if (!on() || !sequences_.tree().contains(seq)) return;
  Job job = job_at_once(seq, length, sequences_.length(seq));
  job.durable = sequences_.notes(seq).session.has_value();
  if (!run(job, limit)) metrics_.tier_unsaved.Increment();
}

bool Tiering::bring_to_host(SeqId seq, Duration limit) {
  if (!on() || !sequences_.tree().contains(seq)) return false;
  Job job = job_at_once(seq, 0, sequences_.length(seq));
  job.room = tier::Tiers::Room::as_is;
  run(job, limit);
  return holds(seq);
}

bool Tiering::work(bool busy) {
  if (!on()) return false;
  tiers_->poll();
  check_flushes();
  const TimePoint began = clock_.now();
  if (!busy) unsaved_since_ = began;
  if (jobs_.empty()) return false;
  const double earned_s = to_s(began - unsaved_since_) / (kSaveShare - 1);
  if (busy && earned_s < costs_.saving_s(block_tokens_)) return false;
  const Stall stall(clock_, stalls_.save_worst);
  for (int i = 0; i < (busy ? 1 : kBlocksAtOnce) && !jobs_.empty() && clock_.now() - began <= kSaveAtOnce; ++i) {
    if (advance(jobs_.front())) continue;
    jobs_.pop_front();
    ++jobs_ended_;
  }
  unsaved_since_ = clock_.now();
  return true;
}

void Tiering::flush(std::function<void(tier::FlushResult)> done) {
  if (!on()) return done({});
  flushes_.push_back({.jobs_before = jobs_begun_, .ticket = {}, .done = std::move(done)});
}

void Tiering::check_flushes() {
  for (std::size_t i = 0; i < flushes_.size();) {
    Flush& flush = flushes_[i];
    if (!flush.ticket && jobs_ended_ >= flush.jobs_before) flush.ticket = tiers_->flush_begin();
    const auto result = flush.ticket ? tiers_->flush_result(*flush.ticket) : std::nullopt;
    if (!result) {
      ++i;
      continue;
    }
    const auto done = std::move(flush.done);
    flushes_.erase(flushes_.begin() + static_cast<std::ptrdiff_t>(i));
    done(*result);
  }
}

}  // namespace coppice::sched
