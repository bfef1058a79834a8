// Segments as files: their names, and how one record is read and checked. Threading: pure functions, and calls that
// block on the disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tier/block.h"
#include "tier/file_system.h"

namespace coppice::tier {

struct SegmentName {
  std::uint64_t number = 0;
  bool named_open = false;  // NUMBER.open, under writing, rather than NUMBER.seg
};

std::string segment_name(const SegmentName& name);
std::optional<SegmentName> parse_segment_name(std::string_view name);

struct RecordPlace {
  std::uint64_t segment = 0, offset = 0;
  std::uint64_t record_bytes = 0, payload_bytes = 0;
};

// The block, if it is whole and the one that was asked for. REQUIRES: payload_bytes <= record_bytes, and so much can be
// in the file.
Result<Block> read_record(FileSystem& files, const std::string& path, const RecordPlace& place, const BlockId& id);

}  // namespace coppice::tier
