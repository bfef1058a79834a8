#include "tier/disk_worker.h"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "obs/log.h"
#include "tier/record.h"

namespace coppice::tier {

// `mutex_` guards the queues and what is said beside it; what has no lock is the thread's own.
class DiskWorker::Core {
 public:
  Core(std::unique_ptr<DiskStore> store, std::function<void()> wake)
      : store_(std::move(store)), wake_(std::move(wake)), space_(store_->space()) {}

  void loop();
  void run_all();
  void submit(DiskJob job);
  void submit(ReadJob job);
  std::vector<DiskEvent> take(DiskSpace& space);
  // Asks the loop to end. Whether it has before `wait` is over; if not, nobody is woken any more.
  bool end(Duration wait);

 private:
  static constexpr std::uint64_t kGroupBytesMax = std::uint64_t{64} << 20;  // synced at once

  // Takes and does one piece of work; false if there is none. `lock` is given back while the disk is used.
  bool do_one(std::unique_lock<std::mutex>& lock);
  void write_group(const std::vector<WriteJob>& group);
  void read(const ReadJob& job);
  void run(const DiskJob& job);
  void wake();
  void say(DiskEvent event) { done_.push_back(std::move(event)); }

  std::unique_ptr<DiskStore> store_;
  std::vector<DiskEvent> done_;     // of the piece of work under way
  bool compaction_failed_ = false;  // not tried again before other work has been done

  std::mutex wake_mutex_;  // guards wake_, and that it is not called once it was taken away
  std::function<void()> wake_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ReadJob> reads_;  // guarded by mutex_, as are all below
  std::deque<DiskJob> jobs_;
  std::vector<DiskEvent> events_;
  DiskSpace space_;
  bool stop_ = false, ended_ = false;
};

DiskWorker::DiskWorker(std::unique_ptr<DiskStore> store, std::function<void()> wake, const DiskOptions& options)
    : core_(std::make_shared<Core>(std::move(store), std::move(wake))),
      end_wait_(options.end_wait),
      on_hung_(options.on_hung) {
  if (options.own_thread) thread_ = std::thread([core = core_] { core->loop(); });
}

DiskWorker::~DiskWorker() {
  if (!thread_.joinable()) {
    core_->run_all();
    return;
  }
  if (core_->end(end_wait_)) {
    thread_.join();
    return;
  }
  obs::log_error("disk hangs", "waited_s={:.1f} reason=\"what was not written yet is lost\"", to_s(end_wait_));
  thread_.detach();
  if (on_hung_) on_hung_();
}

void DiskWorker::submit(DiskJob job) { core_->submit(std::move(job)); }
void DiskWorker::submit(ReadJob job) { core_->submit(job); }
std::vector<DiskEvent> DiskWorker::take(DiskSpace& space) { return core_->take(space); }
void DiskWorker::run_all() {
  assert(!thread_.joinable());
  core_->run_all();
}

bool DiskWorker::Core::end(Duration wait) {
  {
    std::unique_lock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
    if (changed_.wait_for(lock, wait, [&] { return ended_; })) return true;
  }
  const std::lock_guard lock(wake_mutex_);
  wake_ = nullptr;
  return false;
}

void DiskWorker::Core::wake() {
  const std::lock_guard lock(wake_mutex_);
  if (wake_) wake_();
}

void DiskWorker::Core::submit(DiskJob job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void DiskWorker::Core::submit(ReadJob job) {
  {
    const std::lock_guard lock(mutex_);
    reads_.push_back(job);
  }
  changed_.notify_one();
}

std::vector<DiskEvent> DiskWorker::Core::take(DiskSpace& space) {
  const std::lock_guard lock(mutex_);
  space = space_;
  return std::exchange(events_, {});
}

void DiskWorker::Core::run_all() {
  std::unique_lock lock(mutex_);
  while (do_one(lock)) {
  }
}

void DiskWorker::Core::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (do_one(lock)) continue;
    if (stop_) break;
    changed_.wait(lock);
  }
  lock.unlock();
  store_ = nullptr;  // seals its segment: that too can hang
  lock.lock();
  ended_ = true;
  changed_.notify_all();
}

bool DiskWorker::Core::do_one(std::unique_lock<std::mutex>& lock) {
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
  if (news) {
    lock.unlock();
    wake();
    lock.lock();
  }
  return true;
}

void DiskWorker::Core::write_group(const std::vector<WriteJob>& group) {
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

void DiskWorker::Core::read(const ReadJob& job) {
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

void DiskWorker::Core::run(const DiskJob& job) {
  using Kind = DiskEvent::Kind;
  compaction_failed_ = false;
  if (const auto* erase = std::get_if<EraseJob>(&job)) {
    if (auto done = store_->erase(erase->ids); !done) say({.kind = Kind::trouble, .reason = done.error().message});
  } else if (const auto* use = std::get_if<UseJob>(&job)) {
    if (auto done = store_->set_uses(use->uses); !done) say({.kind = Kind::trouble, .reason = done.error().message});
  } else if (const auto* records = std::get_if<RecordsJob>(&job)) {
    const auto done = store_->change_records(records->changes);
    if (done && records->silent) return;
    if (records->silent) return say({.kind = Kind::trouble, .reason = done.error().message});
    say({.kind = done ? Kind::records_saved : Kind::records_failed, .reason = done ? "" : done.error().message});
  } else if (const auto* barrier = std::get_if<BarrierJob>(&job)) {
    say({.kind = Kind::barrier, .serial = barrier->ticket});
  }
}

}  // namespace coppice::tier
