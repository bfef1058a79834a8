#include "tier/tiers.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <algorithm>
#include <cassert>
#include <ranges>

#include "obs/log.h"
#include "obs/metrics.h"
#include "tier/cache_folder.h"
#include "tier/record.h"
#include "tier/write_behind.h"

namespace coppice::tier {

Tiers::Tiers(const Options& options, const Clock& clock, obs::Metrics& metrics)
    : options_(options),
      clock_(clock),
      metrics_(metrics),
      policy_(options.eviction ? options.eviction : std::make_shared<const RecomputeOrReadPolicy>()),
      tree_(options.host_bytes_max, options.block_tokens) {}

Tiers::~Tiers() = default;

std::uint64_t DiskOptions::now_us() const { return wall_us ? wall_us() : system_us(); }

Result<std::unique_ptr<Tiers>> Tiers::open(const Options& options, const Clock& clock, obs::Metrics& metrics) {
  if (options.block_tokens < 1) return invalid("a block needs at least one token");
  std::unique_ptr<Tiers> tiers(new Tiers(options, clock, metrics));
  if (options.disk) {
    if (options.host_bytes_max == 0) return invalid("a disk tier needs host memory: blocks pass through it");
    auto opened = DiskStore::open(*options.disk, options.block_tokens);
    if (!opened) return std::unexpected(std::move(opened.error()));
    tiers->secret_ = std::move(opened->secret);
    std::string hour;
    for (RecordChange& record : opened->records) {
      if (record.kind == kHourRecordKind) {
        hour = std::move(*record.value);
        continue;
      }
      tiers->record_bytes_ += record.kind.size() + record.key.size() + record.value->size();
      tiers->records_[record.kind][record.key] = std::move(*record.value);
    }
    tiers->disk_ = std::make_unique<WriteBehind>(tiers->tree_, *tiers->policy_, clock, *options.disk,
                                                 std::move(opened->store), options.wake);
    tiers->disk_->load(std::move(opened->blocks));
    tiers->disk_->load_hour(hour);
  } else {
    tiers->secret_ = random_secret();
  }
  tiers->publish();
  return tiers;
}

// `keep` is not given up, though nobody has a lease on it; may be null.
bool Tiers::make_room(std::uint64_t bytes, Entry* keep) {
  if (keep != nullptr) tree_.pin(*keep);
  const bool room = tree_.room(bytes);
  while (room && !tree_.fits_now(bytes)) {
    Entry* victim = tree_.host_victim(*policy_, clock_.now());
    assert(victim != nullptr);  // room() is exact
    if (victim->in_cells == 0) ++counts_.host.evictions;
    if (victim->disk == DiskState::wanted) ++n_given_up_;
    tree_.drop_host(*victim);
  }
  if (keep != nullptr) tree_.unpin(*keep);
  return room;
}

// False if a block that only cells hold cannot be taken.
bool Tiers::adopt(Entry& entry, Payload state, std::uint64_t record_bytes, Room room) {
  const std::uint64_t bytes = state->size();
  if (entry.payload_bytes != 0 && entry.payload_bytes != bytes) return entry.saved();
  if (room == Room::make ? !make_room(bytes, &entry) : !tree_.fits_now(bytes)) return entry.saved();
  tree_.adopt(entry, std::move(state), record_bytes);
  drop_covered(entry);
  return true;
}

bool Tiers::put(Block block, bool durable, Room room) {
  assert(block.state != nullptr && names(block.id, block.parent, block.tokens));
  if (!tree_.fits(block)) return false;
  const std::uint64_t bytes = block.state->size(), record_bytes = record_size(block.tokens.size(), bytes);
  Entry* known = tree_.covering(block);
  if (known == nullptr) {
    Entry* parent = tree_.get(block.parent);
    // It stays, whatever goes.
    const bool safe = parent == nullptr || parent->disk == DiskState::held || parent->in_cells > 0;
    if (room == Room::as_is && !tree_.fits_now(bytes)) return false;
    if (!make_room(bytes, safe ? nullptr : parent)) {
      ++counts_.refused;
      publish();
      return false;
    }
    known = &tree_.add(std::move(block), record_bytes, clock_.now());
    drop_covered(*known);
  } else {
    tree_.touch(*known, clock_.now());
    if (disk_) disk_->used(*known);
    // It was in cells alone, or was computed again, or it would not be here: having it in memory spares the read.
    if (known->id == block.id && known->host == HostState::none &&
        !adopt(*known, std::move(block.state), record_bytes, room)) {
      if (room == Room::make) ++counts_.refused;
      publish();
      return false;
    }
  }
  if (durable) want_durable(known->id);
  if (disk_) disk_->pump();
  publish();
  return true;
}

bool Tiers::has_room() const {
  const TreeTotals& totals = tree_.totals();
  return tree_.fits_now(totals.host_blocks == 0 ? 0 : totals.host_bytes / totals.host_blocks);
}

std::optional<std::uint64_t> Tiers::enter_cells(Block block) {
  Entry* known = tree_.get(block.id);
  if (known != nullptr) {
    tree_.enter_cells(*known);
    return known->serial;
  }
  if (!tree_.fits(block)) return std::nullopt;
  Entry& entry = tree_.add_in_cells(std::move(block));
  drop_covered(entry);
  return entry.serial;
}

void Tiers::enter_cells(const BlockId& id) { tree_.enter_cells(*tree_.get(id)); }

void Tiers::leave_cells(const BlockId& id, std::uint64_t serial) {
  Entry* entry = tree_.get(id, serial);
  if (entry == nullptr) return;
  if (entry->in_cells > 1 || entry->saved()) return tree_.leave_cells(*entry);
  for (Entry* e : tree_.subtree(*entry)) remove(*e);
  publish();
}

// From both tiers. REQUIRES: no block goes on from it.
void Tiers::remove(Entry& entry) {
  if (entry.disk == DiskState::held || entry.disk == DiskState::writing) disk_->erase(entry.id);
  tree_.remove(entry);
}

// What the entry begins with is stored twice no longer, once the entry is as safe as the shorter block was. In cells it
// is as safe as in host memory: it is saved before they lose it.
void Tiers::drop_covered(Entry& entry) {
  for (Entry* shorter : tree_.covered_by(entry)) {
    if (disk_ && shorter->disk != DiskState::none && entry.disk == DiskState::none) disk_->want(entry);
    const bool as_safe = shorter->disk == DiskState::none || entry.disk == DiskState::held ||
                         (shorter->disk == DiskState::wanted && entry.disk != DiskState::none);
    if (shorter->pinned() || !as_safe) continue;
    remove(*shorter);
  }
}

void Tiers::want_durable(const BlockId& id) {
  Entry* entry = tree_.get(id);
  if (!disk_ || entry == nullptr) return;
  disk_->want(*entry);
}

std::size_t Tiers::thin_checkpoints(const BlockId& root, std::span<const Token> tokens) {
  std::vector<Entry*> all = tree_.checkpoints(root, tokens);
  if (all.empty()) return 0;
  const TokenPos last = all.back()->end();
  TokenPos kept = last;
  std::size_t gone = 0;
  for (std::size_t i = all.size() - 1; i-- > 0;) {
    Entry& entry = *all[i];
    if (kept - entry.end() >= last - kept || entry.pinned() || entry.uses > 1) {
      kept = entry.end();
      continue;
    }
    remove(entry);
    ++gone;
  }
  if (gone > 0) publish();
  return gone;
}

Lease Tiers::lease(std::span<const BlockId> blocks) {
  Lease lease(tree_, blocks);
  for (const Lease::Held& held : lease.blocks()) {
    Entry& entry = *tree_.get(held.id);
    if (entry.saved()) ++(entry.host == HostState::none ? counts_.disk : counts_.host).hits;
    tree_.touch(entry, clock_.now());
    if (disk_) disk_->used(entry);
  }
  publish();
  return lease;
}

// The last of those let go first: beginnings are what conversations share.
bool Tiers::make_room_of(const Lease& lease, std::uint64_t bytes) {
  for (std::size_t i = lease.n_let_go(); i > 0; --i) {
    const Lease::Held& held = lease.blocks()[i - 1];
    Entry* entry = tree_.get(held.id, held.serial);
    const bool on_disk = entry != nullptr && entry->host == HostState::held && entry->disk == DiskState::held;
    if (!on_disk || entry->pinned()) continue;
    tree_.drop_host(*entry);
    if (make_room(bytes, nullptr)) return true;
  }
  return false;
}

void Tiers::prefetch(const Lease& lease, std::size_t first) {
  if (!disk_) return;
  for (const Lease::Held& held : lease.blocks() | std::views::drop(std::max(first, lease.n_let_go()))) {
    Entry* entry = tree_.get(held.id, held.serial);
    if (entry == nullptr) break;  // what goes on from a lost block is of no use
    if (entry->host != HostState::none || entry->disk != DiskState::held) continue;
    if (!make_room(entry->payload_bytes, nullptr) && !make_room_of(lease, entry->payload_bytes)) break;
    tree_.begin_read(*entry);
    disk_->read(*entry);
  }
  publish();
}

Ready Tiers::ready(const Lease& lease, std::size_t first) const {
  Ready ready = Ready::yes;
  for (const Lease::Held& held : lease.blocks() | std::views::drop(std::max(first, lease.n_let_go()))) {
    const Entry* entry = tree_.get(held.id);
    const bool there = entry != nullptr && entry->serial == held.serial;
    if (there && entry->host == HostState::reading) return Ready::waiting;
    if (!there || entry->host == HostState::none) ready = Ready::lost;
    if (!there) break;
  }
  return ready;
}

Payload Tiers::payload(const BlockId& id) const {
  const Entry* entry = tree_.get(id);
  return entry == nullptr ? nullptr : entry->payload;
}

void Tiers::quarantine(const BlockId& id) {
  Entry* entry = tree_.get(id);
  if (entry == nullptr) return;
  drop_bad(*entry);
  if (disk_) disk_->pump();
  publish();
}

void Tiers::drop_bad(Entry& entry) {
  ++counts_.quarantined;
  const std::vector<Entry*> all = tree_.subtree(entry);
  obs::log_warn("block quarantined", "id={} begin={} with_descendants={}", short_hex(entry.id), entry.begin,
                all.size());
  for (Entry* e : all) remove(*e);
}

bool Tiers::poll() {
  if (!disk_) return false;
  const WriteBehind::News news = disk_->take();
  for (const WriteBehind::Ref& ref : news.bad) {
    if (Entry* entry = tree_.get(ref.id, ref.serial)) drop_bad(*entry);
  }
  for (const WriteBehind::Ref& ref : news.written) {
    if (Entry* entry = tree_.get(ref.id, ref.serial)) drop_covered(*entry);
  }
  disk_->pump();
  publish();
  return news.any;
}

TokenPos Tiers::length(const BlockId& id) const {
  const Entry* entry = tree_.get(id);
  return entry == nullptr ? 0 : static_cast<TokenPos>(entry->tokens.size());
}

std::uint64_t Tiers::flush_begin() { return disk_ ? disk_->flush_begin() : 0; }

std::optional<FlushResult> Tiers::flush_result(std::uint64_t ticket) {
  return disk_ ? disk_->flush_result(ticket) : FlushResult{};
}

bool Tiers::put_record(std::string_view kind, std::string_view key, std::string value) {
  const std::uint64_t names = kind.size() + key.size();
  std::uint64_t before = 0;
  const auto known = records(kind).find(key);
  if (known != records(kind).end()) {
    if (known->second == value) return true;
    before = names + known->second.size();
  }
  const std::uint64_t after = names + value.size();
  if (record_bytes_ - before + after > kRecordBytesMax) return false;
  record_bytes_ += after - before;
  records_[std::string(kind)][std::string(key)] = value;
  if (disk_) {
    disk_->save_record(std::string(kind), std::string(key), std::move(value));
    disk_->pump();
  }
  return true;
}

void Tiers::erase_record(std::string_view kind, std::string_view key) {
  const auto of_kind = records_.find(kind);
  if (of_kind == records_.end()) return;
  const auto known = of_kind->second.find(key);
  if (known == of_kind->second.end()) return;
  record_bytes_ -= kind.size() + key.size() + known->second.size();
  of_kind->second.erase(known);
  if (!disk_) return;
  disk_->save_record(std::string(kind), std::string(key), std::nullopt);
  disk_->pump();
}

const std::map<std::string, std::string, std::less<>>& Tiers::records(std::string_view kind) const {
  static const std::map<std::string, std::string, std::less<>> kNone;
  const auto found = records_.find(kind);
  return found == records_.end() ? kNone : found->second;
}

std::uint64_t Tiers::wall_us() const { return options_.disk ? options_.disk->now_us() : system_us(); }

Stats Tiers::stats() const {
  Stats stats = counts_;
  const TreeTotals& totals = tree_.totals();
  stats.host.bytes = totals.host_bytes;
  stats.host.blocks = totals.host_blocks;
  stats.host.bytes_max = options_.host_bytes_max;
  if (disk_) {
    stats.disk.bytes = totals.disk_bytes;
    stats.disk.blocks = totals.disk_blocks;
    stats.disk.bytes_max = options_.disk->bytes_max;
    disk_->add_to(stats);
    stats.disk_state.given_up = n_given_up_;
  }
  return stats;
}

// Brings the metrics up to what stats() says; counters grow by the difference.
void Tiers::publish() {
  const Stats now = stats();
  const auto set = [](prometheus::Gauge& gauge, std::uint64_t value) { gauge.Set(static_cast<double>(value)); };
  const auto raise = [](prometheus::Counter& counter, std::uint64_t value) {
    const double missing = static_cast<double>(value) - counter.Value();
    if (missing > 0) counter.Increment(missing);
  };
  const TierStats* tiers[] = {&now.host, &now.disk};
  for (std::size_t i = 0; i < 2; ++i) {
    set(*metrics_.tier_bytes[i], tiers[i]->bytes);
    set(*metrics_.tier_bytes_limit[i], tiers[i]->bytes_max);
    set(*metrics_.tier_blocks[i], tiers[i]->blocks);
    raise(*metrics_.tier_evictions[i], tiers[i]->evictions);
    raise(*metrics_.tier_hits[i], tiers[i]->hits);
  }
  raise(metrics_.tier_blocks_quarantined, now.quarantined);
  raise(metrics_.tier_puts_refused, now.refused);
  set(metrics_.tier_disk_degraded, now.disk_state.degraded ? 1 : 0);
  set(metrics_.tier_disk_segment_bytes, now.disk_state.segment_bytes);
  set(metrics_.tier_disk_queue_bytes, now.disk_state.queue_bytes);
  set(metrics_.tier_disk_unwritten_blocks, now.disk_state.unwritten);
  raise(metrics_.tier_disk_written_bytes, now.disk_state.written_bytes);
  raise(metrics_.tier_disk_read_bytes, now.disk_state.read_bytes);
  raise(metrics_.tier_disk_held_back, now.disk_state.held_back);
  raise(metrics_.tier_disk_write_failures, now.disk_state.write_failures);
  raise(metrics_.tier_disk_given_up, now.disk_state.given_up);
}

}  // namespace coppice::tier
