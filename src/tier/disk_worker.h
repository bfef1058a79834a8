// The thread that does the disk tier's work: jobs go in, events come out. Reads go first, as a request waits for each;
// blocks to be written are taken together and synced once; when nothing is to be done, segments are compacted piece by
// piece.
// Bounds: the owner hands out bytes to write within queue_bytes_max and reads within its host budget; of all other
// kinds one job at a time. Owner: WriteBehind. Threading: submit(), take() and the destructor on the engine thread,
// which never waits for a disk in the first two. `mutex_` guards the queues and what is said beside it. The destructor
// lets all jobs be done first.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "tier/block.h"
#include "tier/disk_store.h"

namespace coppice::tier {

struct WriteJob {
  Block block;
  std::uint64_t serial = 0;
  BlockUse use;
};
struct ReadJob {
  BlockId id{};
  std::uint64_t serial = 0;
};
struct EraseJob {
  std::vector<BlockId> ids;
};
struct UseJob {
  std::vector<BlockUse> uses;
};
struct RecordsJob {
  std::vector<RecordChange> changes;
};
struct BarrierJob {  // answered once everything before it has been done
  std::uint64_t ticket = 0;
};
using DiskJob = std::variant<WriteJob, EraseJob, UseJob, RecordsJob, BarrierJob>;

struct DiskEvent {
  enum class Kind : std::uint8_t {
    written,         // id, serial
    write_failed,    // id, serial, reason
    left_out,        // id, serial: not written, as the block that it goes on from is not on disk
    read,            // id, serial, payload
    read_failed,     // id, serial, reason
    found_bad,       // id: by compaction; it is gone
    records_saved,   //
    records_failed,  // reason
    trouble,         // reason: some other change could not be made
    barrier,         // serial: the ticket
  };
  Kind kind = Kind::trouble;
  BlockId id{};
  std::uint64_t serial = 0;
  Payload payload;
  std::string reason;
};

class DiskWorker {
 public:
  // own_thread false: run_all() does the work, on the thread that calls it.
  DiskWorker(std::unique_ptr<DiskStore> store, std::function<void()> wake, bool own_thread);
  ~DiskWorker();
  DiskWorker(const DiskWorker&) = delete;
  DiskWorker& operator=(const DiskWorker&) = delete;

  void submit(DiskJob job);
  void submit(ReadJob job);
  std::vector<DiskEvent> take(DiskSpace& space);
  void run_all();  // REQUIRES: no own thread

 private:
  static constexpr std::uint64_t kGroupBytesMax = std::uint64_t{64} << 20;  // synced at once

  void loop();
  // Takes and does one piece of work; false if there is none. `lock` is given back while the disk is used.
  bool do_one(std::unique_lock<std::mutex>& lock);
  void write_group(const std::vector<WriteJob>& group);
  void read(const ReadJob& job);
  void run(const DiskJob& job);
  bool compact();
  void say(DiskEvent event) { done_.push_back(std::move(event)); }

  std::unique_ptr<DiskStore> store_;  // the worker's own
  std::vector<DiskEvent> done_;       // the worker's own: of the piece of work under way
  std::function<void()> wake_;
  bool compaction_failed_ = false;  // the worker's own: not tried again before other work has been done

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ReadJob> reads_;  // guarded by mutex_, as are all below
  std::deque<DiskJob> jobs_;
  std::vector<DiskEvent> events_;
  DiskSpace space_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace coppice::tier
