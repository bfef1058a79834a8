// SIGINT and SIGTERM as events instead of interruptions. The first asks the server to stop, the second ends the process
// at once with status 130. SIGPIPE is ignored: a client that goes away is an error code, not a signal.
//
// Threading: construct in the main thread before any other thread starts, so that all of them inherit the blocked
// signals and only the watcher here receives them. One per process. interrupted() and wait() are thread-safe.
#pragma once

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

namespace coppice::app {

class Signals {
 public:
  Signals();
  ~Signals();  // restores the signal mask
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int received() const;  // the first signal, or 0
  bool interrupted() const { return received() != 0; }
  int wait();  // blocks until a signal came; returns it

 private:
  void watch();

  sigset_t watched_{}, before_{};
  int signal_fd_ = -1, stop_fd_ = -1;
  mutable std::mutex mutex_;  // guards first_
  std::condition_variable arrived_;
  int first_ = 0;
  std::thread watcher_;
};

}  // namespace coppice::app
