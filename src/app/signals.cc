#include "app/signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdint>
#include <string_view>

namespace coppice::app {
namespace {

constexpr int kExitNow = 130;  // what shells report for a process that SIGINT ended

void say(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

Signals::Signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&watched_);
  sigaddset(&watched_, SIGINT);
  sigaddset(&watched_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
  signal_fd_ = ::signalfd(-1, &watched_, SFD_CLOEXEC);
  stop_fd_ = ::eventfd(0, EFD_CLOEXEC);
  assert(signal_fd_ >= 0 && stop_fd_ >= 0);  // fails only when the process has no descriptors left at its very start
  watcher_ = std::thread([this] { watch(); });
}

Signals::~Signals() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_fd_, &one, sizeof one);
  watcher_.join();
  ::close(signal_fd_);
  ::close(stop_fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Signals::received() const {
  std::lock_guard lock(mutex_);
  return first_;
}

int Signals::wait() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return first_ != 0; });
  return first_;
}

void Signals::watch() {
  for (;;) {
    pollfd events[] = {{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (::poll(events, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if ((events[1].revents & POLLIN) != 0) return;
    signalfd_siginfo info{};
    if (::read(signal_fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    std::lock_guard lock(mutex_);
    if (first_ != 0) {
      say("\nstopped at once\n");
      ::_exit(kExitNow);
    }
    first_ = static_cast<int>(info.ssi_signo);
    arrived_.notify_all();
  }
}

}  // namespace coppice::app
