// The thread that does the disk tier's work: jobs go in, events come out. Reads go first, as a request waits for each;
// blocks to be written are taken together and synced once; when nothing is to be done, segments are compacted piece by
// piece.
// Bounds: the owner hands out bytes to write within queue_bytes_max and reads within its host budget; of all other
// kinds one job at a time. Owner: WriteBehind. Threading: submit(), take() and the destructor on the engine thread,
// which never waits for a disk in the first two. The destructor lets all jobs be done first, but waits no longer than
// end_wait: a thread whose call of the disk hangs is left behind with all that it uses, `on_hung` is told, and the
// process should end without waiting for anything (the thread may still be there when its static objects go).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
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
  bool silent = false;  // no event follows, but for trouble
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
  // Of the options: own_thread, without which run_all() does the work on the thread that calls it; end_wait, on_hung.
  DiskWorker(std::unique_ptr<DiskStore> store, std::function<void()> wake, const DiskOptions& options);
  ~DiskWorker();
  DiskWorker(const DiskWorker&) = delete;
  DiskWorker& operator=(const DiskWorker&) = delete;

  void submit(DiskJob job);
  void submit(ReadJob job);
  std::vector<DiskEvent> take(DiskSpace& space);
  void run_all();  // REQUIRES: no own thread

 private:
  class Core;  // all that the thread uses; it lives as long as the thread
  std::shared_ptr<Core> core_;
  std::thread thread_;
  Duration end_wait_;
  std::function<void()> on_hung_;
};

}  // namespace coppice::tier
