// A server that dies while it is measured: the run says which and where, keeps what it has, goes on with the rest,
// leaves nothing behind, and is no success.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "peers/cleanup.h"
#include "process_test_support.h"
#include "report/record.h"

namespace coppice::bench {
namespace {

std::string text_of_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Speaks for servers that are processes which do nothing: one answers on a port at a time, given by a file "PORT PID".
// At the completion of that number it kills the process, and closes the port in the middle of the answer.
class StandIn {
 public:
  StandIn(std::filesystem::path file, int dies_at) : file_(std::move(file)), dies_at_(dies_at) {}
  ~StandIn() {
    stop_ = true;
    thread_.join();
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

 private:
  void run() {
    while (!stop_) {
      int port = 0;
      if (std::ifstream in(file_); in >> port >> pid_) {
        serve(port);
      } else {
        ::poll(nullptr, 0, 2);
      }
    }
  }

  void serve(int port) {
    const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    ::setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool bound = ::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                       ::listen(listening, 16) == 0;
    std::filesystem::remove(file_);
    bool alive = bound;
    while (alive && !stop_ && !std::filesystem::exists(file_)) {
      pollfd ready{listening, POLLIN, 0};
      if (::poll(&ready, 1, 2) <= 0) continue;
      const int fd = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      alive = answer(fd);
      if (!alive) ::close(listening);
      ::close(fd);
    }
    if (alive || !bound) ::close(listening);
  }

  // Whether it lives on.
  bool answer(int fd) {
    std::string request;
    std::array<char, 65536> bytes{};
    const auto whole = [&] {
      const std::size_t head = request.find("\r\n\r\n"), length = request.find("Content-Length: ");
      if (head == std::string::npos) return false;
      return length == std::string::npos || request.size() >= head + 4 + std::stoul(request.substr(length + 16));
    };
    while (!whole()) {
      const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), 0);
      if (n <= 0) return true;
      request.append(bytes.data(), static_cast<std::size_t>(n));
    }
    std::string body = R"({"data":[{"id":"m","meta":{"n_vocab":1000}}]})";
    bool dies = false;
    if (request.starts_with("POST /v1/completions")) {
      body = "data: {\"choices\":[{\"text\":\"a\"}],\"timings\":{\"prompt_n\":1}}\n\ndata: [DONE]\n\n";
      dies = ++n_completions_ == dies_at_;
    }
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    const std::string answer = head + (dies ? body.substr(0, body.size() / 2) : body);
    if (dies && pid_ > 0) ::kill(pid_, SIGKILL);
    ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    return !dies;
  }

  const std::filesystem::path file_;
  const int dies_at_;
  int n_completions_ = 0;
  pid_t pid_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_{[this] { run(); }};
};

// What a whole run of the program leaves.
struct Ended {
  int status = 0;
  std::string said, page;
  Results results;
};

class PeerDeath : public ::testing::Test {
 protected:
  Ended run_program(const std::vector<std::string>& server) {
    const auto path = [&](const char* name) { return (folder_.path() / name).string(); };
    std::filesystem::create_directory(path("tmp"));
    std::vector<std::string> words = {"coppice-bench", "run",       "--model", "m=none",    "--scenario",
                                      "turn2",         "--scale",   "quick",   "--repeats", "1",
                                      "--out",         path("out"), "--html",  path("html")};
    words.insert(words.end(), server.begin(), server.end());
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const pid_t bench = ::fork();
    if (bench == 0) {
      ::setenv("TMPDIR", path("tmp").c_str(), 1);
      if (::freopen(path("said").c_str(), "w", stderr) == nullptr) ::_exit(126);
      ::execv(COPPICE_BENCH_PROGRAM, argv.data());
      ::_exit(127);
    }
    Ended end;
    ::waitpid(bench, &end.status, 0);
    end.said = text_of_file(path("said")), end.page = text_of_file(path("html"));
    EXPECT_TRUE(read_lines(text_of_file(path("out")), end.results));
    EXPECT_TRUE(std::filesystem::is_empty(path("tmp")));
    return end;
  }

  const ScratchFolder folder_;
};

void expect_told(const Ended& end, const std::string& how) {
  EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == EXIT_FAILURE) << end.status;
  EXPECT_NE(end.said.find("turn2, 4 sessions, 4 slots, one head, mine: " + how), std::string::npos) << end.said;
  EXPECT_NE(end.page.find(how), std::string::npos) << "the page says it too";
  ASSERT_EQ(end.results.records.size(), 4U) << end.said;
  EXPECT_FALSE(end.results.records[0].measures.empty()) << "what was measured before stays";
  EXPECT_NE(end.results.records[1].error.find(how), std::string::npos) << end.results.records[1].error;
}

TEST_F(PeerDeath, OneThatWasStartedIsNamedAndTheRestIsMeasured) {
  const auto program = folder_.path() / "server", file = folder_.path() / "port", pids = folder_.path() / "pids";
  std::ofstream(program) << "#!/bin/sh\necho $$ >> " << pids.string() << "\necho $1 $$ > " << file.string()
                         << ".new\nmv " << file.string() << ".new " << file.string() << "\nexec sleep 1000\n";
  ::chmod(program.c_str(), 0755);
  const StandIn stand_in(file, 6);  // the first variant takes three
  const Ended end = run_program({"--spawn", "mine=" + program.string() + " {port}"});
  ASSERT_NO_FATAL_FAILURE(expect_told(end, "was killed by signal 9 in the middle"));
  for (const std::size_t later : {2U, 3U}) EXPECT_FALSE(end.results.records[later].measures.empty()) << later;
  std::ifstream in(pids);
  int n = 0;
  for (pid_t pid = 0; in >> pid; ++n) EXPECT_TRUE(eventually([&] { return !exists(pid); })) << pid;
  EXPECT_EQ(n, 4);
}

TEST_F(PeerDeath, OneThatRanAlreadyIsNamedInEveryVariantThatItMisses) {
  const auto file = folder_.path() / "port";
  // A port that is free: nobody else is given it so soon.
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(fd);
  const std::string port = std::to_string(ntohs(address.sin_port));
  std::ofstream(file) << port << " 0\n";
  const StandIn stand_in(file, 6);
  ASSERT_TRUE(eventually([&] { return !std::filesystem::exists(file); }));
  const Ended end = run_program({"--peer", "mine=http://127.0.0.1:" + port});
  ASSERT_NO_FATAL_FAILURE(expect_told(end, "does not answer any more in the middle"));
  for (const std::size_t later : {2U, 3U}) {
    EXPECT_NE(end.results.records[later].error.find("cannot connect"), std::string::npos) << later;
  }
}

}  // namespace
}  // namespace coppice::bench
