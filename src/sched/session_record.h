// A session as a line of text that the tiers keep, so that the next start of the server knows it again: who it is, and
// what its last prompt was, for the reason that its next turn is given.
//
// The prompt is not stored a second time. The record names the full blocks that it begins with, 32 bytes for each 256
// tokens, and has only the tokens behind the last of them; the others are the blocks' own. A block that the tiers gave
// up takes its tokens along, and then nobody can say any more where a later prompt parts from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kv/slot_map.h"
#include "tier/block.h"

namespace coppice::sched {

inline constexpr std::string_view kSessionRecords = "session";

struct SessionRecord {
  kv::SessionKey key;
  tier::BlockId root{};  // of its blocks: what tells the model, its settings and the namespace
  std::string parent;    // as in SessionTable::Session
  std::int64_t requests = 0;
  std::uint64_t last_use_us = 0;  // since 1970
  std::vector<tier::BlockId> blocks;
  Tokens tail;
};

// Session and root, so that models that take turns on one folder do not overwrite each other's sessions. What it says
// is not part of the text.
std::string record_key(const kv::SessionKey& key, const tier::BlockId& root);
std::string to_text(const SessionRecord& record);

// Nothing for a key or a text of another format.
std::optional<SessionRecord> read_session_record(std::string_view key, std::string_view text);

}  // namespace coppice::sched
