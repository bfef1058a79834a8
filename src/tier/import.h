// Takes an export into a cache folder. Threading: one thread; blocks on the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "tier/cache_editor.h"
#include "tier/file_system.h"

namespace coppice::tier {

struct Imported {
  CacheEditor::Added blocks;
  std::uint64_t records = 0, known_records = 0;
  std::uint64_t refused_records = 0;  // there is no room for them
};

// Reads the whole file before anything changes; makes the folder if it is not there, and keeps what is there. If it
// stops halfway, what was taken in stays, and doing it again goes on.
// `mix`: take it in although the folder's blocks are all of other models or namespaces.
// Errors: invalid_request: the file is not whole, of another format, or does not fit the folder; unavailable: a server
// uses the folder.
Result<Imported> import_file(const std::shared_ptr<FileSystem>& files, const std::string& path, const std::string& dir,
                             bool mix, const OnProgress& progress);

}  // namespace coppice::tier
