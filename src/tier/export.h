// Writes blocks and text records of a cache folder into an export file. Threading: one thread; blocks on the disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "tier/cache_editor.h"
#include "tier/cache_reader.h"

namespace coppice::tier {

struct Exported {
  std::uint64_t blocks = 0, bytes = 0, records = 0;
  std::uint64_t bad = 0;   // left out, with what goes on from them
  std::uint64_t gone = 0;  // given up by a server meanwhile
};

// `chains`: beginnings of blocks' names in hex, each of one block; these go with all that they go on from, and without
// text records but those that name their roots. None: everything. Errors: a name that no block has, or several; the
// file is there.
Result<Exported> export_cache(CacheReader& cache, FileSystem& files, const std::vector<std::string>& chains,
                              const std::string& path, const OnProgress& progress);

}  // namespace coppice::tier
