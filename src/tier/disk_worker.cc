#include "tier/disk_worker.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "tier/record.h"

namespace coppice::tier {

DiskWorker::DiskWorker(std::unique_ptr<DiskStore> store, std::function<void()> wake, bool own_thread)
    : store_(std::move(store)), wake_(std::move(wake)), space_(store_->space()) {
  if (own_thread) thread_ = std::thread([this] { loop(); });
}

DiskWorker::~DiskWorker() {
  if (!thread_.joinable()) {
    run_all();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void DiskWorker::submit(DiskJob job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void DiskWorker::submit(ReadJob job) {
  {
    const std::lock_guard lock(mutex_);
    reads_.push_back(job);
  }
  changed_.notify_one();
}

std::vector<DiskEvent> DiskWorker::take(DiskSpace& space) {
  const std::lock_guard lock(mutex_);
  space = space_;
  return std::exchange(events_, {});
}

void DiskWorker::run_all() {
  assert(!thread_.joinable());
  std::unique_lock lock(mutex_);
  while (do_one(lock)) {
  }
}

void DiskWorker::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (do_one(lock)) continue;
    if (stop_) return;
    changed_.wait(lock);
  }
}

bool DiskWorker::do_one(std::unique_lock<std::mutex>& lock) {
  std::vector<WriteJob> group;
  std::uint64_t bytes = 0;
  std::optional<ReadJob> next_read;
  std::optional<DiskJob> next_job;
  if (!reads_.empty()) {
    next_read = reads_.front();
    reads_.pop_front();
  } else {
    while (!jobs_.empty() && std::holds_alternative<WriteJob>(jobs_.front())) {
      const Block& block = std::get<WriteJob>(jobs_.front()).block;
      bytes += record_size(block.tokens.size(), block.state->size());
      if (!group.empty() && bytes > kGroupBytesMax) break;
      group.push_back(std::move(std::get<WriteJob>(jobs_.front())));
      jobs_.pop_front();
    }
    if (group.empty() && !jobs_.empty()) {
      next_job = std::move(jobs_.front());
      jobs_.pop_front();
    }
  }
  if (!next_read && !next_job && group.empty() && (stop_ || compaction_failed_ || !store_->compaction_due()))
    return false;

  lock.unlock();
  if (next_read) {
    read(*next_read);
  } else if (!group.empty()) {
    write_group(group);
  } else if (next_job) {
    run(*next_job);
  } else if (auto compacted = store_->compact_piece(); !compacted) {
    compaction_failed_ = true;
    say({.kind = DiskEvent::Kind::trouble, .reason = compacted.error().message});
  }
  for (const BlockId& id : store_->take_found_bad()) say({.kind = DiskEvent::Kind::found_bad, .id = id});
  lock.lock();
  space_ = store_->space();
  const bool news = !done_.empty();
  std::ranges::move(done_, std::back_inserter(events_));
  done_.clear();
  if (news && wake_) {
    lock.unlock();
    wake_();
    lock.lock();
  }
  return true;
}

void DiskWorker::write_group(const std::vector<WriteJob>& group) {
  compaction_failed_ = false;
  std::vector<DiskStore::Write> writes;
  for (const WriteJob& job : group) writes.push_back({&job.block, job.use});
  std::vector<std::size_t> left_out;
  const auto written = store_->write(writes, left_out);
  for (std::size_t i = 0; i < group.size(); ++i) {
    DiskEvent event{.kind = DiskEvent::Kind::written, .id = group[i].block.id, .serial = group[i].serial};
    if (!written) {
      event.kind = DiskEvent::Kind::write_failed;
      event.reason = written.error().message;
    } else if (std::ranges::binary_search(left_out, i)) {
      event.kind = DiskEvent::Kind::left_out;
    }
    say(std::move(event));
  }
}

void DiskWorker::read(const ReadJob& job) {
  auto payload = store_->read(job.id);
  DiskEvent event{.kind = DiskEvent::Kind::read, .id = job.id, .serial = job.serial};
  if (payload) {
    event.payload = std::move(*payload);
  } else {
    event.kind = DiskEvent::Kind::read_failed;
    event.reason = payload.error().message;
  }
  say(std::move(event));
}

void DiskWorker::run(const DiskJob& job) {
  using Kind = DiskEvent::Kind;
  compaction_failed_ = false;
  if (const auto* erase = std::get_if<EraseJob>(&job)) {
    if (auto done = store_->erase(erase->ids); !done) say({.kind = Kind::trouble, .reason = done.error().message});
  } else if (const auto* use = std::get_if<UseJob>(&job)) {
    if (auto done = store_->set_uses(use->uses); !done) say({.kind = Kind::trouble, .reason = done.error().message});
  } else if (const auto* records = std::get_if<RecordsJob>(&job)) {
    const auto done = store_->change_records(records->changes);
    say({.kind = done ? Kind::records_saved : Kind::records_failed, .reason = done ? "" : done.error().message});
  } else if (const auto* barrier = std::get_if<BarrierJob>(&job)) {
    say({.kind = Kind::barrier, .serial = barrier->ticket});
  }
}

}  // namespace coppice::tier
