// The whole program in a process of its own: start, one stream, SIGTERM, clean end.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "app/cli.h"

namespace coppice::app {
namespace {

// Reads `fd` until `mark` was seen or it ends; returns all that came.
std::string read_until(int fd, const std::string& mark) {
  std::string text;
  char buffer[4096];
  while (text.find(mark) == std::string::npos) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr generic{};
  static_assert(sizeof generic == sizeof address);
  std::memcpy(&generic, &address, sizeof address);
  return ::connect(fd, &generic, sizeof address) == 0 ? fd : -1;
}

// The client's side, beside the server in the same process: begins an endless stream, asks the process to stop, and
// says on stderr whether the stream still ended as streams should.
void client(int banner_fd) {
  const std::string banner = read_until(banner_fd, "Stop it with Ctrl-C");
  const std::string mark = "http://127.0.0.1:";
  const std::size_t at = banner.find(mark);
  if (at == std::string::npos) return;
  const int fd = connect_to(static_cast<std::uint16_t>(std::atoi(banner.c_str() + at + mark.size())));
  const std::string body = R"({"stream":true,"ignore_eos":true,"messages":[{"role":"user","content":"Hello"}]})";
  const std::string request =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  if (::write(fd, request.data(), request.size()) != static_cast<ssize_t>(request.size())) return;
  read_until(fd, "\"content\"");
  ::kill(::getpid(), SIGTERM);
  const std::string rest = read_until(fd, "data: [DONE]\n\n\r\n0\r\n\r\n");
  std::fputs(rest.find("data: [DONE]") != std::string::npos ? "stream ended properly\n" : "stream was cut off\n",
             stderr);
  ::close(fd);
}

[[noreturn]] void serve_and_exit(const std::vector<std::string>& args) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before client() starts, so that only the server receives it
  int ends[2];
  if (::pipe(ends) != 0) std::_Exit(99);
  ::dup2(ends[1], STDOUT_FILENO);
  ::close(ends[1]);
  std::thread watching([&] { client(ends[0]); });
  const int status = run(args);
  ::close(STDOUT_FILENO);
  watching.join();
  std::_Exit(status);
}

TEST(ServerDeathTest, StopsCleanlyWithAStreamInFlight) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(serve_and_exit({"serve", "--port", "0", "-c", "4096", "--shutdown-grace", "0"}),
              testing::ExitedWithCode(0), "stream ended properly");
}

TEST(ServerDeathTest, APortInUseIsStatusOneBeforeTheModelLoads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr generic{};
  std::memcpy(&generic, &address, sizeof address);
  ASSERT_EQ(::bind(fd, &generic, sizeof generic), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  socklen_t size = sizeof generic;
  ASSERT_EQ(::getsockname(fd, &generic, &size), 0);
  std::memcpy(&address, &generic, sizeof address);
  const std::string port = std::to_string(ntohs(address.sin_port));
  // A death test's process runs this code again, so it holds the port itself.
  EXPECT_EXIT(std::_Exit(run({"serve", "--port", port, "-m", "/nonexistent.gguf"})), testing::ExitedWithCode(1),
              "port is in use");
  ::close(fd);
}

TEST(ServerDeathTest, APoolFileThatIsMissingIsStatusOneBeforeTheModelLoads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(run({"serve", "--port", "0", "-m", "/nonexistent.gguf", "--pool", "/nonexistent/pools.json"})),
              testing::ExitedWithCode(1), "coppice: --pool /nonexistent/pools.json: No such file");
}

TEST(ServerDeathTest, APoolFileWithABadEntryIsStatusOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = testing::TempDir() + "bad_entry.json";
  std::ofstream(path) << R"([{"name":"a","prompt":"x"},{"name":"b","tokens":[1,-1]}])";
  EXPECT_EXIT(std::_Exit(run({"serve", "--port", "0", "-c", "4096", "--pool", path})), testing::ExitedWithCode(1),
              "bad_entry.json: pools\\[1\\]: 'tokens' has a token id");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace coppice::app
