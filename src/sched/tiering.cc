#include "sched/tiering.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <cassert>
#include <ranges>
#include <utility>

#include "obs/log.h"
#include "tier/cache_reader.h"
#include "tier/payload.h"

namespace coppice::sched {
namespace {

// Jobs that wait. Each is one end of a prompt or a turn; with more, saving cannot keep up, and the oldest are given up.
constexpr std::size_t kJobsMax = 256;
// What one step saves behind: one block, and more of them only while that takes next to no time.
constexpr int kBlocksAtOnce = 4;
constexpr std::chrono::milliseconds kSaveAtOnce{2};
// Blocks that one call looks at without saving any: comparing costs a hash of their tokens.
constexpr int kKnownBlocksAtOnce = 128;
// Namespaces whose root is remembered; beyond, all are computed anew.
constexpr std::size_t kRootsMax = 4096;

constexpr std::string_view kPoolRecords = "pool";

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

std::string pool_key(NamespaceId ns, const std::string& name) { return std::to_string(ns.value) + "/" + name; }

}  // namespace

tier::BlockId root_of(const std::string& fingerprint, NamespaceId ns) {
  return tier::root_of(fingerprint, std::to_string(ns.value));
}

Tiering::Tiering(TierOptions options, Sequences& sequences, engine::Runner& runner, CostModel& costs,
                 const Clock& clock, obs::Metrics& metrics)
    : tiers_(runner.info().saves_ranges ? options.tiers : nullptr),
      fingerprint_(std::move(options.fingerprint)),
      sequences_(sequences),
      runner_(runner),
      costs_(costs),
      clock_(clock),
      metrics_(metrics),
      block_tokens_(tiers_ != nullptr ? tiers_->block_tokens() : 0),
      last_(runner.info().rewind == engine::Rewind::anywhere ? tier::BlockKind::cells : tier::BlockKind::checkpoint) {
  if (!on()) return;
  cell_blocks_.emplace(*tiers_, sequences_, [this](NamespaceId ns) -> const tier::BlockId& { return root(ns); });
  // For people who look into the folder. Of other namespaces nobody is told.
  tiers_->put_record(tier::kRootRecordKind, tier::hex(root(NamespaceId{})), fingerprint_);
}

const tier::BlockId& Tiering::root(NamespaceId ns) const {
  if (roots_.size() > kRootsMax) roots_.clear();
  const auto [it, is_new] = roots_.try_emplace(ns.value);
  if (is_new) it->second = root_of(fingerprint_, ns);
  return it->second;
}

tier::Found Tiering::look_up(NamespaceId ns, const Tokens& prompt) const {
  if (!on() || prompt.size() < 2) return {};
  return tiers_->find(root(ns), std::span(prompt).first(prompt.size() - 1), last_);
}

TierHold Tiering::find(NamespaceId ns, const Tokens& prompt, TokenPos in_cells) {
  TierHold hold{.lease = {}, .tokens = 0, .tokens_in_host = 0, .in_cells = 0, .blocks_saved = blocks_saved_};
  const tier::Found found = look_up(ns, prompt);
  if (found.tokens == 0) return hold;
  hold.lease = tiers_->lease(found.blocks);
  hold.tokens = found.tokens;
  hold.tokens_in_host = found.tokens_in_host;
  prefetch(hold, in_cells);
  return hold;
}

TokenPos Tiering::known(NamespaceId ns, const Tokens& prompt, TokenPos* in_host) const {
  const tier::Found found = look_up(ns, prompt);
  *in_host = found.tokens_in_host;
  return found.tokens;
}

// Blocks whose cells are there need not be: but for the one that ends a chain with a state.
std::size_t Tiering::first_needed(const TierHold& hold) const {
  const std::size_t n = hold.lease.blocks().size(), whole = static_cast<std::size_t>(hold.in_cells / block_tokens_);
  return std::min(whole, has_checkpoints() && n > 0 ? n - 1 : n);
}

void Tiering::prefetch(TierHold& hold, TokenPos in_cells) {
  hold.in_cells = in_cells;
  if (hold.tokens > hold.tokens_in_host) tiers_->prefetch(hold.lease, first_needed(hold));
}

bool Tiering::waits_for_disk(const TierHold& hold) const {
  return hold.lease && tiers_->ready(hold.lease, first_needed(hold)) == tier::Ready::waiting;
}

void Tiering::leave_out_the_disk(TierHold& hold) const {
  TokenPos end = static_cast<TokenPos>(first_needed(hold)) * block_tokens_;
  for (const auto& held : hold.lease.blocks() | std::views::drop(first_needed(hold))) {
    if (tiers_->payload(held.id) == nullptr) {
      hold.tokens = has_checkpoints() ? 0 : std::min(hold.tokens, end);
      return;
    }
    end += block_tokens_;
  }
}

// All of it, host memory's part or not: what is not there yet is read while the beginning is restored.
TokenPos Tiering::usable(const TierHold& hold) const {
  const std::size_t first = first_needed(hold);
  TokenPos end = static_cast<TokenPos>(first) * block_tokens_;
  std::size_t n_there = first;
  for (const auto& held : hold.lease.blocks() | std::views::drop(first)) {
    const tier::Entry* block = tiers_->block(held.id);
    if (end >= hold.tokens || block == nullptr || block->serial != held.serial || !block->saved()) break;
    end += block_tokens_;
    ++n_there;
  }
  if (has_checkpoints() && n_there < hold.lease.blocks().size()) return 0;
  return std::min(end, hold.tokens);
}

bool Tiering::holds(SeqId seq) const {
  if (!on() || !sequences_.tree().contains(seq)) return false;
  const Tokens tokens = sequences_.tokens(seq);
  const tier::Found found = tiers_->find(root(sequences_.namespace_of(seq)), tokens, last_);
  return found.tokens == static_cast<TokenPos>(tokens.size()) && std::ranges::all_of(found.blocks, [&](const auto& id) {
           return tiers_->block(id)->host == tier::HostState::held;
         });
}

// Which block the sequence lacks; nothing if none does.
std::optional<std::size_t> Tiering::next_block(const TierHold& hold, SeqId seq, TokenPos until) const {
  const TokenPos begin = sequences_.length(seq);
  const std::size_t n_blocks = hold.lease.blocks().size();
  if (n_blocks == 0 || begin > until || (begin == until && sequences_.resumable(seq))) return std::nullopt;
  auto index = static_cast<std::size_t>(begin / block_tokens_);
  if (has_checkpoints()) index = std::min(index, n_blocks - 1);  // all cells may be there, and the state not
  if (index >= n_blocks) return std::nullopt;
  return index;
}

Tiering::Next Tiering::prepare(SeqId seq, TierHold& hold, TokenPos until) {
  const auto index = next_block(hold, seq, until);
  if (!index) return Next::gone;
  hold.lease.let_go(*index);
  tiers_->prefetch(hold.lease);
  const tier::Lease::Held& held = hold.lease.blocks()[*index];
  const tier::Entry* block = tiers_->block(held.id);
  if (block == nullptr || block->serial != held.serial) return Next::gone;
  switch (block->host) {
    case tier::HostState::held: return Next::ready;
    case tier::HostState::reading: return Next::reading;
    case tier::HostState::none: return block->saved() ? Next::no_room : Next::gone;
  }
  return Next::gone;
}

TokenPos Tiering::cells_needed(SeqId seq, const TierHold& hold, TokenPos until) const {
  const auto index = next_block(hold, seq, until);
  return !index || sequences_.length(seq) == until ? 0 : tiers_->length(hold.lease.blocks()[*index].id);
}

std::optional<TokenPos> Tiering::restore(SeqId seq, const TierHold& hold, TokenPos until) {
  const TokenPos begin = sequences_.length(seq);
  const auto index = next_block(hold, seq, until);
  if (!index) return std::nullopt;
  const tier::BlockId id = hold.lease.blocks()[*index].id;
  const tier::Payload payload = tiers_->payload(id);
  if (payload == nullptr) return std::nullopt;
  const TokenPos block_begin = static_cast<TokenPos>(*index) * block_tokens_,
                 block_end = block_begin + tiers_->length(id);
  const TokenPos end = std::min(until, block_end);
  if (end < begin) return std::nullopt;
  const TimePoint began = clock_.now();
  const bool restored = sequences_.restore(seq, end, {block_begin, block_end, *payload});
  const Duration took = clock_.now() - began;
  stalls_.restore_worst = std::max(stalls_.restore_worst, took);
  if (!restored) {
    obs::log_warn("block could not be restored", "block={} begin={} end={}", tier::short_hex(id), block_begin,
                  block_end);
    tiers_->quarantine(id);
    return std::nullopt;
  }
  metrics_.tier_restore_seconds.Observe(to_s(took));
  if (tier::kind_of(id) == tier::BlockKind::checkpoint) {
    costs_.note_restored_state(begin == end ? 0 : block_end - block_begin, took);
  } else {
    costs_.note_restored_cells(block_end - block_begin, took);
  }
  return end - begin;
}

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
  metrics_.tier_save_seconds.Observe(to_s(clock_.now() - began));
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
  while (advance(job)) {
  }
  tiers_->thin_checkpoints(root(job.ns), job.all());
  if (durable) keep(seq, job.tokens, at, true, true);
}

void Tiering::keep_now(SeqId seq, TokenPos length, std::int32_t blocks_max) {
  if (!on() || !sequences_.tree().contains(seq)) return;
  const Stall stall(clock_, stalls_.save_worst);
  Job job = job_at_once(seq, length, sequences_.length(seq));
  job.durable = sequences_.notes(seq).session.has_value();
  for (std::int32_t i = 0; i < blocks_max && advance(job); ++i) {
  }
}

void Tiering::record_pool(NamespaceId ns, const std::string& name, Tokens tokens) {
  if (!on()) return;
  const PoolRecord record{.name = name, .ns = ns, .fingerprint = fingerprint_, .tokens = std::move(tokens)};
  if (!tiers_->put_record(kPoolRecords, pool_key(ns, name), to_text(record))) {
    obs::log_warn("pool will not outlive this process", "name=\"{}\" tokens={}", name, record.tokens.size());
  }
}

void Tiering::forget_pool(NamespaceId ns, const std::string& name) {
  if (on()) tiers_->erase_record(kPoolRecords, pool_key(ns, name));
}

std::vector<PoolRecord> pool_records(const TierOptions& options) {
  std::vector<PoolRecord> out;
  if (options.tiers == nullptr) return out;
  for (const auto& [key, text] : options.tiers->records(kPoolRecords)) {
    auto record = read_pool_record(text);
    if (record && record->fingerprint == options.fingerprint) out.push_back(*std::move(record));
  }
  return out;
}

bool Tiering::work() {
  if (!on()) return false;
  tiers_->poll();
  check_flushes();
  if (jobs_.empty()) return false;
  const Stall stall(clock_, stalls_.save_worst);
  const TimePoint began = clock_.now();
  for (int i = 0; i < kBlocksAtOnce && !jobs_.empty() && clock_.now() - began <= kSaveAtOnce; ++i) {
    if (advance(jobs_.front())) continue;
    jobs_.pop_front();
    ++jobs_ended_;
  }
  return true;
}

tier::Stats Tiering::stats() const {
  if (!on()) return {};
  tier::Stats stats = tiers_->stats();
  stats.stalls = stalls_;
  return stats;
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
