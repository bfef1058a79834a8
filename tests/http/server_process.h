// A running server for a test: starts the program on a free port, keeps what it prints, and ends it.
//
// Owner: the test. Start it on the test's main thread: the server is killed when the thread that started it ends, so
// that a crashed test leaves none behind. Other methods may be called from that thread only. COPPICE_PROGRAM in the
// environment names another program than the one of this build.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace coppice::http_test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A process of the program, in an environment without COPPICE_* and LLAMA_* variables.
class Program {
 public:
  explicit Program(const std::vector<std::string>& args);
  ~Program();  // kills it if it still runs
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void signal(int number) const;
  std::uint64_t memory_bytes(const std::string& field) const;  // of /proc/PID/status: "VmRSS", "VmHWM"
  // The exit status (128 + signal if a signal ended it), or nothing if it still runs after that time.
  std::optional<int> wait(std::chrono::seconds at_most);
  bool running() { return !wait(std::chrono::seconds(0)); }
  std::string standard_output() const;
  std::string standard_error() const;

 private:
  std::optional<int> reap();

  TempDir dir_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

class ServerProcess {
 public:
  // `coppice serve --port 0 -t 1` and `args`. Waits until it serves. Null, with a test failure that shows the log, if
  // it does not.
  static std::unique_ptr<ServerProcess> start(const std::vector<std::string>& args);
  ~ServerProcess();  // SIGTERM; a test failure if it does not end well

  std::uint16_t port() const { return port_; }
  Program& program() { return program_; }

 private:
  explicit ServerProcess(const std::vector<std::string>& args) : program_(args) {}
  bool wait_until_serving();
  std::string log() const;

  Program program_;
  std::uint16_t port_ = 0;
};

// A model file that the target `models` made.
std::string random_model(const std::string& architecture);

}  // namespace coppice::http_test
