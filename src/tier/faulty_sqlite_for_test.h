// SQLite's files with faults: a VFS around the system's, used by everything that opens an index while it lives.
#pragma once

#include <sqlite3.h>

#include <cstring>
#include <functional>
#include <stdexcept>

namespace coppice::tier {

class FaultySqlite {
 public:
  enum class Call { read, write, sync, truncate };
  // Called before each; another value than SQLITE_OK is returned instead of doing it. The log's ("-wal") calls too.
  std::function<int(Call, const char* path)> before;

  FaultySqlite() : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
    if (real_ == nullptr || self_ != nullptr) throw std::runtime_error("no VFS to stand before");
    self_ = this;
    vfs_.zName = "coppice-faulty";
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    vfs_.xOpen = open;
    sqlite3_vfs_register(&vfs_, 1);
  }
  // REQUIRES: what was opened is closed.
  ~FaultySqlite() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(real_, 1);
    self_ = nullptr;
  }
  FaultySqlite(const FaultySqlite&) = delete;
  FaultySqlite& operator=(const FaultySqlite&) = delete;

 private:
  struct File {
    sqlite3_file base;
    const char* path;  // SQLite keeps it as long as the file is open
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  };
  static File* of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
  static int ask(sqlite3_file* file, Call call) {
    return self_ != nullptr && self_->before ? self_->before(call, of(file)->path) : SQLITE_OK;
  }
  // Passes a call on, where it may not fail on demand.
  template <auto Method, class... Args>
  static int pass(sqlite3_file* file, Args... args) {
    sqlite3_file* real = of(file)->real();
    return (real->pMethods->*Method)(real, args...);
  }
  template <auto Method, Call Which, class... Args>
  static int faulty(sqlite3_file* file, Args... args) {
    const int code = ask(file, Which);
    return code != SQLITE_OK ? code : pass<Method>(file, args...);
  }
  static void barrier(sqlite3_file* file) { of(file)->real()->pMethods->xShmBarrier(of(file)->real()); }
  static int no_fetch(sqlite3_file*, sqlite3_int64, int, void** to) {
    *to = nullptr;  // it reads instead
    return SQLITE_OK;
  }
  static int no_unfetch(sqlite3_file*, sqlite3_int64, void*) { return SQLITE_OK; }

  static int open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out_flags) {
    using M = sqlite3_io_methods;
    static const M methods = {3,
                              pass<&M::xClose>,
                              faulty<&M::xRead, Call::read, void*, int, sqlite3_int64>,
                              faulty<&M::xWrite, Call::write, const void*, int, sqlite3_int64>,
                              faulty<&M::xTruncate, Call::truncate, sqlite3_int64>,
                              faulty<&M::xSync, Call::sync, int>,
                              pass<&M::xFileSize, sqlite3_int64*>,
                              pass<&M::xLock, int>,
                              pass<&M::xUnlock, int>,
                              pass<&M::xCheckReservedLock, int*>,
                              pass<&M::xFileControl, int, void*>,
                              pass<&M::xSectorSize>,
                              pass<&M::xDeviceCharacteristics>,
                              pass<&M::xShmMap, int, int, int, void volatile**>,
                              pass<&M::xShmLock, int, int, int>,
                              barrier,
                              pass<&M::xShmUnmap, int>,
                              no_fetch,
                              no_unfetch};
    File* wrapped = of(file);
    wrapped->path = path == nullptr ? "" : path;
    std::memset(wrapped->real(), 0, static_cast<std::size_t>(self_->real_->szOsFile));
    const int code = self_->real_->xOpen(self_->real_, path, wrapped->real(), flags, out_flags);
    file->pMethods = wrapped->real()->pMethods != nullptr ? &methods : nullptr;
    return code;
  }

  static inline FaultySqlite* self_ = nullptr;
  sqlite3_vfs* real_;
  sqlite3_vfs vfs_;
};

}  // namespace coppice::tier
