// The engine's side of the disk tier: which blocks are to be written, in which order and when; what the disk gives up;
// what happens while the disk fails. All that touches a disk is done by the DiskWorker's thread, with which this talks
// in jobs and events.
//
// A block is written after the one that it goes on from. The ones that wait are in `wanted_`, and their bytes in host
// memory, so nothing is queued beyond `queue_bytes_max`: what waits too long for the hourly limit or for a disk that
// fails is evicted with the rest.
// While the disk cannot be written it is *degraded*: logged once, tried again 30 seconds later with one block.
// What an hour's limit allows is reserved in the index in sixteenths of it before it is written, so that a server that
// crashes and starts again and again does not begin a new hour each time.
// Owner: Tiers. Threading: the engine thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "tier/disk_worker.h"
#include "tier/tiers.h"

namespace coppice::tier {

class WriteBehind {
 public:
  struct Ref {
    BlockId id{};
    std::uint64_t serial = 0;
  };
  // What the disk has done that is the owner's to act on.
  struct News {
    bool any = false;
    std::vector<Ref> written;  // on disk from now on
    std::vector<Ref> bad;      // could not be read: to be removed with all that goes on from it
  };

  WriteBehind(BlockTree& tree, const BlockEvictionPolicy& policy, const Clock& clock, const DiskOptions& options,
              std::unique_ptr<DiskStore> store, std::function<void()> wake);
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  void load(std::vector<StoredBlock> blocks);  // what the store had when it was opened; before anything else
  void load_hour(const std::string& text);     // the value of its kHourRecordKind record

  void want(Entry& entry);        // with its chain, what can be written of it. REQUIRES: host == held
  void read(Entry& entry);        // REQUIRES: host == reading
  void erase(const BlockId& id);  // its entry has left the disk
  void used(const Entry& entry);  // for the order after a restart
  void save_record(std::string kind, std::string key, std::optional<std::string> value);  // nullopt: erase it

  News take();  // what was done since
  void pump();  // hands out what may be written now, within every limit

  std::uint64_t flush_begin();
  std::optional<FlushResult> flush_result(std::uint64_t ticket);

  void add_to(Stats& stats) const;

 private:
  struct Flush {
    std::vector<Ref> refs;
    bool barrier_sent = false, done = false;
  };
  enum class Next : std::uint8_t { sent, skip, later, wait, blocked };

  void take_event(DiskEvent& event, News& news);
  void take_write(const DiskEvent& event, Entry* entry, News& news);
  void degrade(const std::string& reason);
  void recover();
  bool may_try() const;
  bool hour_allows(std::uint64_t bytes);
  std::uint64_t hour_bytes() const;
  void save_hour(std::uint64_t bytes);
  bool make_disk_room(std::uint64_t bytes);
  Next send_next(const Ref& ref);
  void send_erases();
  void send_uses();
  void send_records();
  std::uint64_t next_use();
  void advance_flushes();

  BlockTree& tree_;
  const BlockEvictionPolicy& policy_;
  const Clock& clock_;
  DiskOptions options_;
  std::uint64_t live_bytes_max_, record_bytes_max_;
  std::deque<Ref> wanted_;
  bool blocked_ = false;           // what is in wanted_ cannot go on before time passes or the disk recovers
  std::uint64_t queue_bytes_ = 0;  // with the worker, to be written
  std::unordered_map<std::uint64_t, std::uint64_t> sent_bytes_;  // the same by serial
  std::vector<BlockId> erases_;
  std::unordered_map<BlockId, BlockUse, BlockIdHash> uses_;
  std::uint64_t last_use_ = 0;
  std::map<std::pair<std::string, std::string>, RecordChange> records_, records_sent_;
  bool records_under_way_ = false;
  std::map<std::uint64_t, Flush> flushes_;
  std::uint64_t next_ticket_ = 1;
  std::optional<TimePoint> retry_at_;  // set while degraded
  std::string reason_;
  TimePoint hour_begin_;
  std::uint64_t hour_written_before_ = 0;  // of space_.written_bytes
  std::uint64_t hour_carried_ = 0;         // written in this hour before the start
  std::uint64_t hour_reserved_ = 0;        // that the index says
  DiskSpace space_;
  Stats counts_;
  std::unique_ptr<DiskWorker> worker_;  // last: its thread must end first
};

}  // namespace coppice::tier
