// FileSystem on POSIX.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "tier/file_system.h"

namespace coppice::tier {
namespace {

std::unexpected<Error> system_error(const char* what, const std::string& path, int error) {
  Error e{ErrorKind::internal, fmt::format("{} {}: {}", what, path, std::generic_category().message(error)), {}, {}};
  if (error == ENOSPC || error == EDQUOT) e.code = "full";
  if (error == EWOULDBLOCK) e.code = "in_use";
  return std::unexpected(std::move(e));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

class PosixAppendFile final : public AppendFile {
 public:
  PosixAppendFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_error("write", path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

  Result<void> sync() override {
    if (::fdatasync(fd_.get()) != 0) return system_error("sync", path_, errno);
    return {};
  }

 private:
  Descriptor fd_;
  std::string path_;
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(int fd) : fd_(fd) {}

 private:
  Descriptor fd_;
};

class PosixFileSystem final : public FileSystem {
 public:
  Result<void> make_folder(const std::string& path) override {
    std::error_code error;
    const bool made = std::filesystem::create_directories(path, error);
    if (error) return system_error("make", path, error.value());
    if (made && ::chmod(path.c_str(), 0700) != 0) return system_error("chmod", path, errno);
    return {};
  }

  Result<std::vector<FileInfo>> list(const std::string& folder) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
    if (!dir) return system_error("list", folder, errno);
    std::vector<FileInfo> files;
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(dir.get());
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct stat info{};
      if (::fstatat(::dirfd(dir.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;  // just removed
      files.push_back({name, S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0});
    }
    if (errno != 0) return system_error("list", folder, errno);
    return files;
  }

  Result<std::unique_ptr<AppendFile>> create(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return system_error("create", path, errno);
    return std::make_unique<PosixAppendFile>(fd, path);
  }

  Result<std::size_t> read(const std::string& path, std::uint64_t offset, std::span<std::byte> to) override {
    const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.ok()) return system_error("open", path, errno);
    std::size_t done = 0;
    while (done < to.size()) {
      const ssize_t n = ::pread(fd.get(), to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_error("read", path, errno);
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  Result<void> truncate(const std::string& path, std::uint64_t bytes) override {
    if (::truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) return system_error("truncate", path, errno);
    return {};
  }

  Result<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return system_error("rename", from, errno);
    return {};
  }

  Result<void> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return system_error("remove", path, errno);
    return {};
  }

  Result<void> sync_folder(const std::string& path) override {
    const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.ok()) return system_error("open", path, errno);
    if (::fsync(fd.get()) != 0) return system_error("sync", path, errno);
    return {};
  }

  Result<std::uint64_t> free_bytes(const std::string& folder) override {
    struct statvfs info{};
    if (::statvfs(folder.c_str(), &info) != 0) return system_error("stat", folder, errno);
    return std::uint64_t{info.f_bavail} * info.f_frsize;
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return system_error("open", path, errno);
    auto held = std::make_unique<PosixLock>(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return system_error("lock", path, errno);
    return held;
  }
};

}  // namespace

std::shared_ptr<FileSystem> system_files() { return std::make_shared<PosixFileSystem>(); }

}  // namespace coppice::tier
