// Sessions over a restart of the server: what the session table knows goes into the tiers' records at the end of each
// turn and comes back at the next start. A record leaves when the table forgets the session.
//
// Under another model or other settings nothing is found, and the log says what differs. The sessions of before stay in
// the folder for when their model comes back; of those, as many as one table holds.
// Bounds: a record takes some 300 bytes, 64 for each block, and up to 7 for each token behind the last one; so with the
// table's limits all take less than 16 MiB, and as much again for other models.
// Owner: the scheduler, on the engine thread. Does nothing without a disk.
#pragma once

#include <string>

#include "base/clock.h"
#include "sched/session_record.h"
#include "sched/session_table.h"
#include "sched/tiering.h"

namespace coppice::sched {

class SessionKeeper {
 public:
  // `tiers` of the options may be null. `last`: the kind of block that a chain of this model ends in.
  SessionKeeper(const TierOptions& options, tier::BlockKind last, const Clock& clock);

  // Fills the table with the sessions of before, the most recently used first. REQUIRES: the table is empty.
  void load(SessionTable& table);

  void keep(const SessionTable::Session& session);
  void forget(const kv::SessionKey& key);

  // How many of the prompt's tokens the tiers have, and how many of those are in host memory.
  struct Stored {
    TokenPos tokens = 0, in_host = 0;
  };
  Stored stored(const SessionTable::Session& session) const;

 private:
  tier::BlockId root(NamespaceId ns) const;
  SessionTable::Session session_of(SessionRecord record) const;
  void forget_oldest(std::vector<SessionRecord> strangers, std::size_t count_max);
  void log_strangers(std::size_t sessions, std::size_t known) const;

  tier::Tiers* tiers_;  // null: none
  const std::string fingerprint_;
  const tier::BlockKind last_;
  const Clock& clock_;
  bool refused_ = false;  // a record did not fit; said once
};

// What two fingerprints differ in, for people: "k: 1 -> 8, rope: ...".
std::string fingerprint_difference(std::string_view before, std::string_view now);

}  // namespace coppice::sched
