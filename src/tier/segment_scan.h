// What a segment holds, from its own bytes: the way back to the blocks when the index is lost. Only the beginning of
// each record is read. Its name is the digest of its tokens and of what it goes on from, so those are right or the
// record is passed over; the payload is checked when it is read, as always.
// Blocks that were given up before are found too: what they hold is still right, and the budget sees to the rest.
// Threading: pure functions that block on the disk.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "tier/disk_index.h"
#include "tier/file_system.h"
#include "tier/segment_file.h"

namespace coppice::tier {

struct SegmentFacts {
  SegmentName name;
  std::uint64_t bytes = 0;
};

// The folder's segments, oldest first.
Result<std::vector<SegmentFacts>> segments_in(FileSystem& files, const std::string& dir);

// Its records in the order of the file; bytes that are none are passed over. `use` of the rows is empty.
Result<std::vector<IndexRow>> scan_segment(FileSystem& files, const std::string& dir, const SegmentFacts& segment);

}  // namespace coppice::tier
