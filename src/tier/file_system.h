// The operating system's files, as far as the disk tier needs them: one seam, so that tests can fail, delay and tear
// whatever goes through it. Calls block; only start-up and the disk's thread make them. The index has its own way to
// the disk, through SQLite.
// Errors carry the system's words; `code` is "full" when the disk or a quota is, and "in_use" for a lock that another
// holds.
// Threading: the disk's thread, and before it starts the one that opens the tier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace coppice::tier {

class AppendFile {
 public:
  virtual ~AppendFile() = default;
  virtual Result<void> append(std::span<const std::byte> bytes) = 0;  // after an error, any part may have been written
  virtual Result<void> sync() = 0;                                    // what was appended survives a power cut
};

class FileLock {
 public:
  virtual ~FileLock() = default;  // gives the lock back; the system does so for a process that dies
};

struct FileInfo {
  std::string name;
  std::uint64_t bytes = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<void> make_folder(const std::string& path) = 0;  // with its parents, for the user alone; fine if there
  virtual Result<std::vector<FileInfo>> list(const std::string& folder) = 0;        // names, without sub-folders
  virtual Result<std::unique_ptr<AppendFile>> create(const std::string& path) = 0;  // 0600; fails if it is there
  virtual Result<std::size_t> read(const std::string& path, std::uint64_t offset, std::span<std::byte> to) = 0;
  virtual Result<void> truncate(const std::string& path, std::uint64_t bytes) = 0;
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> remove(const std::string& path) = 0;
  virtual Result<void> sync_folder(const std::string& path) = 0;  // names made, changed and removed survive a power cut
  virtual Result<std::uint64_t> free_bytes(const std::string& folder) = 0;
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;  // creates the file; never waits
};

std::shared_ptr<FileSystem> system_files();

}  // namespace coppice::tier
