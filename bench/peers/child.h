// A child process: a server that is measured, or the floor program.
//
// It leads a process group of its own, which ends with it, with this object and with this program (peers/cleanup.h).
//
// Threading: one thread starts it and lives as long, as the child is killed when that thread ends: so even kill -9 of
// this program leaves no server behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result.h"

namespace coppice::bench {

class Child {
 public:
  // Its standard error is appended to `log`; its standard output too, unless `piped`: then read_line and write_line
  // talk to it. REQUIRES: args not empty.
  static Result<Child> start(const std::vector<std::string>& args, const std::filesystem::path& log,
                             bool piped = false);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();  // kills it

  void signal(int number) const;
  bool running();
  // "was killed by signal 9", "ended with status 1"; empty while it runs, as running() and wait() saw it last.
  const std::string& ending() const { return ending_; }
  // Whether it ended within that time.
  bool wait(std::chrono::milliseconds at_most);

  // REQUIRES: piped.
  Status write_line(std::string_view line) const;
  Result<std::string> read_line();

 private:
  Child() = default;
  void close_all();
  void end_group();

  pid_t pid_ = -1;  // -1: none, or it has ended
  int to_ = -1, from_ = -1;
  std::string unread_, ending_;
};

// The words of a command, split at blanks; {NAME} is replaced by the value of NAME.
struct Placeholder {
  std::string_view name;
  std::string value;
};
std::vector<std::string> expand_command(std::string_view command, const std::vector<Placeholder>& values);

}  // namespace coppice::bench
