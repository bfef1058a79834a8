// An index that was lost or cannot be read, made again from the segments. Records of others (sessions, pools) were in
// the index alone, and are lost; when and how often a block was used is unknown, so that later records count as used
// later.
// Threading: as DiskStore::open.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "tier/disk_index.h"
#include "tier/file_system.h"

namespace coppice::tier {

// Puts a row into the index for each record that the segments hold. What was done is logged, and on the way how far it
// is. A segment that cannot be read is passed over. `now_us`: since 1970. Errors: the index cannot be written.
Result<void> rebuild_index(DiskIndex& index, FileSystem& files, const std::string& dir, std::uint64_t now_us);

}  // namespace coppice::tier
