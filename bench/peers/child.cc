#include "peers/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

#include "peers/cleanup.h"

namespace coppice::bench {
namespace {

constexpr std::chrono::milliseconds kReapAgain{5};

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& s : strings) all.push_back(s.data());
  all.push_back(nullptr);
  return all;
}

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  }
};

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& args, const std::filesystem::path& log, bool piped) {
  std::vector<std::string> words = args;
  const std::vector<char*> argv = pointers(words);
  const int err = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (err < 0) return std::unexpected("cannot write " + log.string());
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  Pipe in, out;
  const int child_in = piped ? in.ends[0] : null, child_out = piped ? out.ends[1] : err;

  Child child;
  // Between fork and exec only what is safe after a fork of a process with threads.
  child.pid_ = ::fork();
  if (child.pid_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // of this process alone: for an end that no program can prepare for
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);  // blocked signals would be inherited
    if (::dup2(child_in, 0) < 0 || ::dup2(child_out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(126);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  for (const int fd : {err, null, in.ends[0], out.ends[1]}) ::close(fd);
  child.to_ = in.ends[1], child.from_ = out.ends[0];
  if (child.pid_ < 0) return std::unexpected("cannot start " + args[0] + ": " + std::strerror(errno));
  ::setpgid(child.pid_, child.pid_);  // whoever of the two comes first
  remember_group(child.pid_);
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      to_(std::exchange(other.to_, -1)),
      from_(std::exchange(other.from_, -1)),
      unread_(std::move(other.unread_)),
      ending_(std::move(other.ending_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  close_all();
  pid_ = std::exchange(other.pid_, -1), to_ = std::exchange(other.to_, -1), from_ = std::exchange(other.from_, -1);
  unread_ = std::move(other.unread_), ending_ = std::move(other.ending_);
  return *this;
}

Child::~Child() { close_all(); }

void Child::close_all() {
  for (int* fd : {&to_, &from_}) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
  end_group();
}

// The leader is waited for last: until then its number is nobody else's.
void Child::end_group() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  forget_group(std::exchange(pid_, -1));
}

void Child::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

bool Child::running() {
  if (pid_ <= 0) return false;
  siginfo_t info{};
  const int looked = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (looked == 0 && info.si_pid == pid_) {
    const std::string number = std::to_string(info.si_status);
    ending_ = info.si_code == CLD_EXITED ? "ended with status " + number : "was killed by signal " + number;
    end_group();  // with what it started and left behind
  }
  return pid_ > 0;
}

bool Child::wait(std::chrono::milliseconds at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  while (running() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(kReapAgain);
  return !running();
}

Status Child::write_line(std::string_view line) const {
  std::string bytes = std::string(line) + "\n";
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t n = ::write(to_, rest.data(), rest.size());
    if (n <= 0) return std::unexpected("the program that measures the floor has ended");
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::string> Child::read_line() {
  for (;;) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> bytes{};
    const ssize_t n = ::read(from_, bytes.data(), bytes.size());
    if (n <= 0) return std::unexpected("the program that measures the floor has ended");
    unread_.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

std::vector<std::string> expand_command(std::string_view command, const std::vector<Placeholder>& values) {
  std::vector<std::string> words;
  std::istringstream in{std::string(command)};
  for (std::string word; in >> word;) {
    for (const Placeholder& p : values) {
      const std::string name = "{" + std::string(p.name) + "}";
      for (std::size_t at = 0; (at = word.find(name, at)) != std::string::npos; at += p.value.size()) {
        word.replace(at, name.size(), p.value);
      }
    }
    words.push_back(word);
  }
  return words;
}

}  // namespace coppice::bench
