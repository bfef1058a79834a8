#include "tier/write_behind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <ranges>
#include <sstream>

#include "obs/log.h"
#include "tier/record.h"

namespace coppice::tier {
namespace {

using namespace std::chrono_literals;
constexpr Duration kRetryAfter = 30s, kHour = 1h;
constexpr std::size_t kUsesMax = 256;  // told to the index together
constexpr std::uint64_t kHourShares = 16;

}  // namespace

WriteBehind::WriteBehind(BlockTree& tree, const BlockEvictionPolicy& policy, const Clock& clock,
                         const DiskOptions& options, std::unique_ptr<DiskStore> store, std::function<void()> wake)
    : tree_(tree),
      policy_(policy),
      clock_(clock),
      options_(options),
      live_bytes_max_(disk_budget(options).live_bytes_max),
      record_bytes_max_(std::min(disk_budget(options).record_bytes_max,
                                 options.bytes_per_hour_max == 0 ? UINT64_MAX : options.bytes_per_hour_max)),
      hour_begin_(clock.now()),
      space_(store->space()),
      worker_(std::make_unique<DiskWorker>(std::move(store), std::move(wake), options)) {}

WriteBehind::~WriteBehind() {
  send_erases();
  send_uses();
  records_under_way_ = false;  // no answer is waited for any more
  send_records();
  if (hour_reserved_ > 0 && clock_.now() - hour_begin_ < kHour) save_hour(hour_bytes());  // no more than there was
}

// For people the order is a time (BlockUse); here it is an order alone, as the system's clock can be set. A second
// apart in the past keeps it and makes all of them older than what is used now.
void WriteBehind::load(std::vector<StoredBlock> blocks) {
  std::vector<std::uint64_t> order;
  order.reserve(blocks.size());
  for (const StoredBlock& stored : blocks) order.push_back(stored.use.order);
  std::ranges::sort(order, std::greater<>());
  for (StoredBlock& stored : blocks) {
    const auto rank = std::ranges::lower_bound(order, stored.use.order, std::greater<>()) - order.begin();
    tree_.add_on_disk(std::move(stored.block), stored.payload_bytes, stored.record_bytes,
                      clock_.now() - std::chrono::seconds(rank + 1), stored.use.uses);
    last_use_ = std::max(last_use_, stored.use.order);
  }
  make_disk_room(0);  // the budget may be smaller than the last time
  send_erases();
}

void WriteBehind::want(Entry& entry) {
  std::vector<Entry*> chain;
  for (Entry* e = &entry; e != nullptr && e->disk == DiskState::none; e = e->parent) chain.push_back(e);
  for (Entry* e : chain | std::views::reverse) {
    if (e->host != HostState::held || e->record_bytes > record_bytes_max_) return;  // nor what goes on from it
    tree_.set_disk(*e, DiskState::wanted);
    wanted_.push_back({e->id, e->serial});
  }
}

void WriteBehind::read(Entry& entry) {
  assert(entry.host == HostState::reading);
  worker_->submit(ReadJob{entry.id, entry.serial});
}

void WriteBehind::erase(const BlockId& id) {
  erases_.push_back(id);
  uses_.erase(id);
}

// Later than every earlier one, whatever the system's clock does.
std::uint64_t WriteBehind::next_use() {
  last_use_ = std::max(last_use_ + 1, options_.now_us());
  return last_use_;
}

void WriteBehind::used(const Entry& entry) {
  if (entry.disk == DiskState::held) uses_[entry.id] = {entry.id, next_use(), entry.uses};
}

void WriteBehind::save_record(std::string kind, std::string key, std::optional<std::string> value) {
  std::pair name(kind, key);
  records_[std::move(name)] = {std::move(kind), std::move(key), std::move(value)};
}

WriteBehind::News WriteBehind::take() {
  News news;
  if (!options_.own_thread) worker_->run_all();
  std::vector<DiskEvent> events = worker_->take(space_);
  news.any = !events.empty();
  // From the last one on, so that what failed is wanted again in its old order, parents first.
  const bool failed =
      std::ranges::any_of(events, [](const DiskEvent& e) { return e.kind == DiskEvent::Kind::write_failed; });
  if (failed) {
    for (DiskEvent& event : events | std::views::reverse) {
      if (event.kind == DiskEvent::Kind::write_failed) take_event(event, news);
    }
  }
  for (DiskEvent& event : events) {
    if (event.kind != DiskEvent::Kind::write_failed) take_event(event, news);
  }
  return news;
}

void WriteBehind::take_event(DiskEvent& event, News& news) {
  using Kind = DiskEvent::Kind;
  Entry* entry = event.kind == Kind::found_bad ? tree_.get(event.id) : tree_.get(event.id, event.serial);
  switch (event.kind) {
    case Kind::written:
    case Kind::write_failed:
    case Kind::left_out: take_write(event, entry, news); break;
    case Kind::read:
      if (entry != nullptr) tree_.end_read(*entry, std::move(event.payload));
      break;
    case Kind::read_failed:
      if (entry == nullptr) break;
      obs::log_warn("cached block unreadable", "id={} reason=\"{}\"", short_hex(event.id), event.reason);
      news.bad.push_back({event.id, event.serial});
      break;
    case Kind::found_bad:
      if (entry != nullptr && entry->disk == DiskState::held) news.bad.push_back({event.id, entry->serial});
      break;
    case Kind::records_saved:
      records_sent_.clear();
      records_under_way_ = false;
      recover();
      break;
    case Kind::records_failed:
      records_.merge(records_sent_);  // what has changed since stays as it is
      records_sent_.clear();
      records_under_way_ = false;
      degrade(event.reason);
      break;
    case Kind::trouble: degrade(event.reason); break;
    case Kind::barrier:
      if (const auto flush = flushes_.find(event.serial); flush != flushes_.end()) flush->second.done = true;
      break;
  }
}

void WriteBehind::take_write(const DiskEvent& event, Entry* entry, News& news) {
  // Its bytes were counted when it was sent, whatever has become of its entry since.
  const auto sent = sent_bytes_.find(event.serial);
  queue_bytes_ -= sent->second;
  sent_bytes_.erase(sent);
  if (event.kind == DiskEvent::Kind::written) recover();
  if (event.kind == DiskEvent::Kind::write_failed) {
    ++counts_.disk_state.write_failures;
    degrade(event.reason);
  }
  if (entry == nullptr || entry->disk != DiskState::writing) return;
  if (event.kind == DiskEvent::Kind::written) {
    tree_.set_disk(*entry, DiskState::held);
    news.written.push_back({event.id, event.serial});
    return;
  }
  tree_.set_disk(*entry, DiskState::wanted);
  if (event.kind == DiskEvent::Kind::write_failed) {
    wanted_.push_front({event.id, event.serial});
  } else {
    wanted_.push_back({event.id, event.serial});
  }
}

void WriteBehind::degrade(const std::string& reason) {
  if (!retry_at_) obs::log_error("disk tier degraded", "dir={} reason=\"{}\"", options_.dir, reason);
  retry_at_ = clock_.now() + kRetryAfter;
  reason_ = reason;
}

void WriteBehind::recover() {
  if (!retry_at_) return;
  obs::log_info("disk tier recovered", "dir={}", options_.dir);
  retry_at_.reset();
  reason_.clear();
}

// While degraded, one thing at a time and not too often.
bool WriteBehind::may_try() const { return !retry_at_ || (clock_.now() >= *retry_at_ && queue_bytes_ == 0); }

std::uint64_t WriteBehind::hour_bytes() const {
  return space_.written_bytes - hour_written_before_ + hour_carried_ + queue_bytes_;
}

bool WriteBehind::hour_allows(std::uint64_t bytes) {
  const std::uint64_t limit = options_.bytes_per_hour_max;
  if (limit == 0) return true;
  if (clock_.now() - hour_begin_ >= kHour) {
    hour_begin_ = clock_.now();
    hour_written_before_ = space_.written_bytes;
    hour_carried_ = hour_reserved_ = 0;
  }
  const std::uint64_t after = hour_bytes() + bytes;
  if (after > limit) return false;
  if (after > hour_reserved_) save_hour(std::min(limit, after + limit / kHourShares));
  return true;
}

// Comes before what is written on the strength of it, as the worker keeps the order of its jobs.
void WriteBehind::save_hour(std::uint64_t bytes) {
  hour_reserved_ = bytes;
  const auto age_us = static_cast<std::uint64_t>((clock_.now() - hour_begin_).count());
  const std::string text = fmt::format("{} {}", options_.now_us() - age_us, bytes);
  worker_->submit(DiskJob(RecordsJob{.changes = {{kHourRecordKind, "written", text}}, .silent = true}));
}

void WriteBehind::load_hour(const std::string& text) {
  std::istringstream in(text);
  std::uint64_t begin_us = 0, bytes = 0;
  if (!(in >> begin_us >> bytes)) return;
  const std::uint64_t now_us = options_.now_us();
  const Duration age(now_us - std::min(now_us, begin_us));  // an hour that the clock puts into the future begins now
  if (age >= kHour) return;
  hour_begin_ = clock_.now() - age;
  hour_carried_ = hour_reserved_ = bytes;
}

bool WriteBehind::make_disk_room(std::uint64_t bytes) {
  while (tree_.totals().disk_bytes + bytes > live_bytes_max_) {
    Entry* victim = tree_.disk_victim(policy_, clock_.now());
    if (victim == nullptr) return false;
    ++counts_.disk.evictions;
    erase(victim->id);
    tree_.drop_disk(*victim);
  }
  return true;
}

void WriteBehind::pump() {
  send_erases();
  if (uses_.size() >= kUsesMax) send_uses();
  if (may_try()) send_records();
  const bool limited = options_.bytes_per_hour_max > 0 && clock_.now() - hour_begin_ < kHour;
  if (limited && hour_bytes() > hour_reserved_) save_hour(hour_bytes());  // compaction writes unasked
  blocked_ = false;
  // A block whose parent is not on its way yet goes to the end, once for each round.
  for (std::size_t postponed = 0; !wanted_.empty() && postponed < wanted_.size();) {
    const Ref ref = wanted_.front();
    const Next next = send_next(ref);
    if (next == Next::blocked) blocked_ = true;
    if (next == Next::blocked || next == Next::wait) break;
    wanted_.pop_front();
    if (next == Next::later) {
      wanted_.push_back(ref);
      ++postponed;
    }
  }
  // Those that were evicted before they could be written.
  if (wanted_.size() > 2 * tree_.size() + 64) {
    std::erase_if(wanted_, [&](const Ref& ref) {
      const Entry* entry = tree_.get(ref.id, ref.serial);
      return entry == nullptr || entry->disk != DiskState::wanted;
    });
  }
  advance_flushes();
}

WriteBehind::Next WriteBehind::send_next(const Ref& ref) {
  Entry* entry = tree_.get(ref.id, ref.serial);
  if (entry == nullptr || entry->disk != DiskState::wanted) return Next::skip;
  if (entry->parent != nullptr && entry->parent->disk == DiskState::wanted) return Next::later;
  if (retry_at_ && queue_bytes_ > 0) return Next::wait;  // for the one attempt that is going on
  if (!may_try()) return Next::blocked;
  const std::uint64_t bytes = entry->record_bytes;
  if (queue_bytes_ > 0 && queue_bytes_ + bytes > options_.queue_bytes_max) return Next::wait;
  if (!hour_allows(bytes)) {
    if (!std::exchange(entry->held_back, true)) ++counts_.disk_state.held_back;
    return Next::blocked;
  }
  if (!make_disk_room(bytes)) return Next::blocked;
  send_erases();
  Block block{.id = entry->id,
              .parent = entry->parent_id,
              .begin = entry->begin,
              .tokens = entry->tokens,
              .state = entry->payload};
  tree_.set_disk(*entry, DiskState::writing);
  queue_bytes_ += bytes;
  sent_bytes_[entry->serial] = bytes;
  worker_->submit(DiskJob(WriteJob{std::move(block), entry->serial, {entry->id, next_use(), entry->uses}}));
  return Next::sent;
}

void WriteBehind::send_erases() {
  if (!erases_.empty()) worker_->submit(DiskJob(EraseJob{std::exchange(erases_, {})}));
}

void WriteBehind::send_uses() {
  UseJob job;
  for (const auto& [id, use] : std::exchange(uses_, {})) job.uses.push_back(use);
  if (!job.uses.empty()) worker_->submit(DiskJob(std::move(job)));
}

void WriteBehind::send_records() {
  // With nothing to write, a change of nothing shows whether the disk works again.
  const bool probe = retry_at_ && records_.empty() && wanted_.empty();
  if ((records_.empty() && !probe) || records_under_way_) return;
  records_sent_ = std::exchange(records_, {});
  records_under_way_ = true;
  RecordsJob job;
  for (const auto& [name, change] : records_sent_) job.changes.push_back(change);
  worker_->submit(DiskJob(std::move(job)));
}

std::uint64_t WriteBehind::flush_begin() {
  Flush& flush = flushes_[next_ticket_];
  for (const Ref& ref : wanted_) flush.refs.push_back(ref);
  tree_.for_each([&](const Entry& entry) {
    if (entry.disk == DiskState::writing) flush.refs.push_back({entry.id, entry.serial});
  });
  if (retry_at_) retry_at_ = clock_.now();  // somebody waits for it: now rather than later
  send_uses();
  pump();
  return next_ticket_++;
}

// The barrier follows the last block that the flush is about, or all that can be written of them.
void WriteBehind::advance_flushes() {
  for (auto& [ticket, flush] : flushes_) {
    if (flush.barrier_sent) continue;
    const bool waiting = !blocked_ && std::ranges::any_of(flush.refs, [&](const Ref& ref) {
      const Entry* entry = tree_.get(ref.id, ref.serial);
      return entry != nullptr && entry->disk == DiskState::wanted;
    });
    if (waiting || (!records_.empty() && may_try())) continue;
    flush.barrier_sent = true;
    worker_->submit(DiskJob(BarrierJob{ticket}));
  }
}

std::optional<FlushResult> WriteBehind::flush_result(std::uint64_t ticket) {
  const auto flush = flushes_.find(ticket);
  if (flush == flushes_.end()) return FlushResult{};
  if (!flush->second.done) return std::nullopt;
  FlushResult result;
  for (const Ref& ref : flush->second.refs) {
    const Entry* entry = tree_.get(ref.id, ref.serial);
    if (entry == nullptr) continue;  // given up, or part of a longer block
    if (entry->disk == DiskState::held) {
      ++result.blocks;
      result.bytes += entry->record_bytes;
    } else {
      ++result.failed;
    }
  }
  if (retry_at_) result.failed += records_.size() + records_sent_.size();
  flushes_.erase(flush);
  return result;
}

void WriteBehind::add_to(Stats& stats) const {
  stats.disk.evictions += counts_.disk.evictions;
  stats.disk_state = counts_.disk_state;
  stats.disk_state.configured = true;
  stats.disk_state.degraded = retry_at_.has_value();
  stats.disk_state.reason = reason_;
  stats.disk_state.segment_bytes = space_.segment_bytes;
  stats.disk_state.written_bytes = space_.written_bytes;
  stats.disk_state.read_bytes = space_.read_bytes;
  stats.disk_state.unwritten = wanted_.size() + sent_bytes_.size();
  stats.disk_state.queue_bytes = queue_bytes_;
}

}  // namespace coppice::tier
