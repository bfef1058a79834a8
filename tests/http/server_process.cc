#include "server_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <string_view>
#include <thread>

namespace coppice::http_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kStartMax{60};  // a busy machine under a sanitizer
constexpr seconds kStopMax{30};
constexpr milliseconds kLookAgain{5};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string program_path() {
  const char* other = std::getenv("COPPICE_PROGRAM");
  return other != nullptr ? other : COPPICE_BINARY_DIR "/coppice";
}

std::vector<std::string> clean_environment() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("COPPICE_") && !text.starts_with("LLAMA_")) kept.emplace_back(text);
  }
  return kept;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

int open_for_writing(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

}  // namespace

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "coppice-http-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Program::Program(const std::vector<std::string>& args) {
  std::vector<std::string> all{program_path()};
  all.insert(all.end(), args.begin(), args.end());
  std::vector<std::string> environment = clean_environment();
  const std::vector<char*> argv = pointers(all), envp = pointers(environment);
  const int out = open_for_writing(dir_.path() / "out"), err = open_for_writing(dir_.path() / "err");
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);

  // Between fork and exec only what is safe after a fork of a process with threads.
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(126);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  for (const int fd : {in, out, err}) ::close(fd);
  EXPECT_GT(pid_, 0) << "fork failed";
}

Program::~Program() {
  if (pid_ <= 0 || status_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Program::signal(int number) const {
  if (pid_ > 0 && !status_) ::kill(pid_, number);
}

std::uint64_t Program::memory_bytes(const std::string& field) const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1)) * 1024;
  }
  ADD_FAILURE() << "no " << field << " of process " << pid_;
  return 0;
}

std::optional<int> Program::reap() {
  int status = 0;
  if (!status_ && pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return status_;
}

std::optional<int> Program::wait(seconds at_most) {
  const auto deadline = steady_clock::now() + at_most;
  while (!reap() && steady_clock::now() < deadline) std::this_thread::sleep_for(kLookAgain);
  return status_;
}

std::string Program::standard_output() const { return read_file(dir_.path() / "out"); }
std::string Program::standard_error() const { return read_file(dir_.path() / "err"); }

std::unique_ptr<ServerProcess> ServerProcess::start(const std::vector<std::string>& args) {
  std::vector<std::string> all{"serve", "--port", "0", "-t", "1"};
  all.insert(all.end(), args.begin(), args.end());
  auto server = std::unique_ptr<ServerProcess>(new ServerProcess(all));
  if (server->wait_until_serving()) return server;
  ADD_FAILURE() << "the server did not start\n" << server->log();
  server->program_.signal(SIGKILL);
  server->program_.wait(kStopMax);
  return nullptr;
}

// The program prints its address once it serves.
bool ServerProcess::wait_until_serving() {
  static const std::regex address(R"(\n  address +http://[^\n]*:(\d+)\n)");
  const auto deadline = steady_clock::now() + kStartMax;
  while (steady_clock::now() < deadline && program_.running()) {
    const std::string out = program_.standard_output();
    if (std::smatch found; std::regex_search(out, found, address)) {
      port_ = static_cast<std::uint16_t>(std::stoi(found[1]));
      return true;
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  return false;
}

ServerProcess::~ServerProcess() {
  if (port_ == 0) return;  // it never served, which was reported
  const bool was_running = program_.running();
  program_.signal(SIGTERM);
  const std::optional<int> status = program_.wait(kStopMax);
  if (was_running) {
    EXPECT_EQ(status, std::optional(0)) << "the server did not end well";
  }
  if (::testing::Test::HasFailure()) std::fputs(log().c_str(), stderr);
}

std::string ServerProcess::log() const {
  std::string log = program_.standard_error();
  constexpr std::size_t kShown = 8000;
  if (log.size() > kShown) log = "...\n" + log.substr(log.size() - kShown);
  return "---- log of the server\n" + log + "----\n";
}

std::string random_model(const std::string& architecture) {
  return COPPICE_BINARY_DIR "/models/" + architecture + ".gguf";
}

}  // namespace coppice::http_test
