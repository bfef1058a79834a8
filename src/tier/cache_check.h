// Reads every block of a cache folder and says what is wrong with it; and removes that. Threading: one thread; blocks
// on the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "tier/cache_editor.h"
#include "tier/cache_reader.h"

namespace coppice::tier {

struct BadBlock {
  BlockId id{};
  std::uint64_t segment = 0, offset = 0;
  std::string reason;
};

struct CheckResult {
  std::uint64_t blocks = 0, bytes = 0;  // read
  std::uint64_t gone = 0;               // given up by a server meanwhile
  std::vector<BadBlock> bad;
  std::uint64_t lost = 0;     // blocks that are whole, but go on from a bad one
  std::string index_problem;  // empty: none. With one, the blocks are those that the segments hold
};

// Changes nothing. Errors: as of CacheReader::open, but for a damaged index, which is a result.
Result<CheckResult> check_cache(const std::shared_ptr<FileSystem>& files, const std::string& dir,
                                const OnProgress& progress);

struct RepairResult {
  CheckResult found;
  std::uint64_t removed = 0;  // blocks
};

// The same on a folder that it takes for itself, and removes what was found. A damaged or missing index is made again
// from the segments; sessions and pools, which were only there, are lost.
Result<RepairResult> repair_cache(const std::shared_ptr<FileSystem>& files, const std::string& dir,
                                  const OnProgress& progress);

}  // namespace coppice::tier
