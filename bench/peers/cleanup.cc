#include "peers/cleanup.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace coppice::bench {
namespace {

// Never destroyed: the thread that waits for signals may use it while the program ends.
struct Remembered {
  std::mutex mutex;
  std::set<pid_t> groups;
  std::set<std::filesystem::path> folders;
};

Remembered& remembered() {
  static auto* all = new Remembered;
  return *all;
}

sigset_t ending_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, s);
  return set;
}

[[noreturn]] void end_by(int signal) {
  Remembered& all = remembered();
  const std::lock_guard lock(all.mutex);  // held to the end: nothing is started or made any more
  for (const pid_t group : all.groups) ::kill(-group, SIGKILL);
  for (const pid_t group : all.groups) ::waitpid(group, nullptr, 0);  // they write no more
  std::error_code ignored;
  for (const auto& folder : all.folders) std::filesystem::remove_all(folder, ignored);
  ::_exit(128 + signal);
}

}  // namespace

void clean_up_on_signals() {
  const sigset_t set = ending_signals();
  // A shell starts programs in the background with SIGINT ignored; asked to end, this one ends.
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_DFL);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  remembered();
  std::thread([set] {
    int signal = 0;
    while (::sigwait(&set, &signal) != 0) {
    }
    end_by(signal);
  }).detach();
}

void remember_group(pid_t leader) {
  const std::lock_guard lock(remembered().mutex);
  remembered().groups.insert(leader);
}

void forget_group(pid_t leader) {
  const std::lock_guard lock(remembered().mutex);
  remembered().groups.erase(leader);
}

ScratchFolder::ScratchFolder() {
  const std::lock_guard lock(remembered().mutex);
  std::error_code ignored;
  std::string name = (std::filesystem::temp_directory_path(ignored) / "coppice-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return;
  path_ = name;
  remembered().folders.insert(path_);
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  const std::lock_guard lock(remembered().mutex);
  remembered().folders.erase(path_);
}

}  // namespace coppice::bench
