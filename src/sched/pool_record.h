// A pool as a line of text that the tiers keep, so that the next start of the server makes it again: without computing
// anything, as its blocks are kept too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace coppice::sched {

struct PoolRecord {
  std::string name;
  NamespaceId ns;
  std::string fingerprint;  // token ids mean something to one model only
  Tokens tokens;
};

std::string to_text(const PoolRecord& record);

// Nothing for a text of another format.
std::optional<PoolRecord> read_pool_record(std::string_view text);

}  // namespace coppice::sched
