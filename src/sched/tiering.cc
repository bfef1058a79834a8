#include "sched/tiering.h"

#include <prometheus/histogram.h>

#include <algorithm>
#include <cassert>
#include <ranges>
#include <utility>

#include "obs/log.h"
#include "tier/cache_reader.h"

namespace coppice::sched {
namespace {

// Namespaces whose root is remembered; beyond, all are computed anew.
constexpr std::size_t kRootsMax = 4096;

constexpr std::string_view kPoolRecords = "pool";

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

tier::Stats Tiering::stats() const {
  if (!on()) return {};
  tier::Stats stats = tiers_->stats();
  stats.stalls = stalls_;
  return stats;
}

}  // namespace coppice::sched
