// What must not outlive this program, however it ends: the processes it started, and its temporary folder.
//
// Owner: the process; there is one list. Threading: any. Once clean_up_on_signals has been called, SIGINT, SIGTERM and
// SIGHUP go to a thread that does nothing but wait for them: it kills what is listed, removes the folder and ends the
// program with 128 + the signal's number. Nothing that runs then gets to finish; lines of results are whole as each is
// written at once. Children run in process groups of their own, so that Ctrl-C reaches this program alone, and what
// they start in turn ends with them.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace coppice::bench {

// REQUIRES: called before any other thread is started, as they inherit the blocked signals; once.
void clean_up_on_signals();

// The process group of that leader is killed at the end, until it is forgotten.
void remember_group(pid_t leader);
void forget_group(pid_t leader);

// A new folder, removed by the destructor or at the end of the program.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }  // empty if it could not be made

 private:
  std::filesystem::path path_;
};

}  // namespace coppice::bench
