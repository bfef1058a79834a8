// How the server starts, refuses to start, and stops.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>

#include "support.h"

namespace coppice::http_test {
namespace {

constexpr std::chrono::seconds kLong{60};

class Lifecycle : public ServerTest, public ::testing::WithParamInterface<int> {};

TEST_P(Lifecycle, ASignalEndsStreamsProperlyAndThenTheServer) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "2", "-c", "32768", "--shutdown-grace", "0"}));
  Json body = {{"messages", messages({user("Who are you?")})}, {"max_tokens", 100'000}, {"ignore_eos", true}};
  Stream stream = client().stream("/v1/chat/completions", body);
  ASSERT_TRUE(stream.next_json().is_object());
  server().program().signal(GetParam());
  Json last, event;
  while (!(event = stream.next_json()).is_null()) last = event;
  stream.rest();
  EXPECT_EQ(last["error"]["type"], "unavailable_error") << last.dump();
  EXPECT_TRUE(stream.done());
  EXPECT_TRUE(stream.complete());
  EXPECT_EQ(server().program().wait(kLong), std::optional(0));
  EXPECT_EQ(client().get("/health").status, 0);

  const std::string port = std::to_string(server().port());
  ASSERT_NO_FATAL_FAILURE(serve({"--port", port}));  // it is free again
  EXPECT_EQ(std::to_string(server().port()), port);
  EXPECT_EQ(client().get("/health").status, 200);
}

INSTANTIATE_TEST_SUITE_P(Signals, Lifecycle, ::testing::Values(SIGTERM, SIGINT),
                         [](const auto& s) { return std::string(s.param == SIGTERM ? "SIGTERM" : "SIGINT"); });

TEST_F(Lifecycle, RunningAnswersAreFinishedWithinTheGrace) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "1", "--shutdown-grace", "60"}));
  Json body = greedy(random_tokens(1, 20), 300);
  body["ignore_eos"] = true;
  Stream stream = client().stream("/completion", body);
  ASSERT_TRUE(stream.next_json().is_object());
  server().program().signal(SIGTERM);
  const Events events = collect(std::move(stream));
  EXPECT_TRUE(events.complete);
  EXPECT_EQ(events.last()["stop"], true) << events.last().dump();
  EXPECT_EQ(events.last()["tokens_predicted"], 300);
  EXPECT_EQ(server().program().wait(kLong), std::optional(0));
}

TEST_F(Lifecycle, TheBannerNamesModelContextSlotsAndALineThatWorks) {
  ASSERT_NO_FATAL_FAILURE(serve({"-np", "3", "-c", "2048"}));
  const std::string out = server().program().standard_output();
  for (const char* part : {"Coppice demo", "2,048 tokens", "3 slots", "KV cache", "/v1/chat/completions"}) {
    EXPECT_NE(out.find(part), std::string::npos) << part << "\n" << out;
  }
  const std::size_t json = out.find("-d '{");
  ASSERT_NE(json, std::string::npos) << out;
  const std::string body = out.substr(json + 4, out.find("'\n", json + 4) - json - 4);
  EXPECT_EQ(client().request("POST", "/v1/chat/completions", body).status, 200) << body;
}

// A socket that listens on a port of its own.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  std::string port() const { return std::to_string(port_); }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

// What the program says when it cannot start: not nothing, and short enough to be read.
void expect_refusal(const std::vector<std::string>& args, const std::string& named) {
  Program program(args);
  const std::optional<int> status = program.wait(kLong);
  ASSERT_TRUE(status.has_value()) << "it started";
  EXPECT_TRUE(*status == 1 || *status == 2) << *status;
  const std::string error = program.standard_error();
  const std::size_t at = error.find("coppice: ");
  ASSERT_NE(at, std::string::npos) << error;
  const std::string line = error.substr(at, error.find('\n', at) - at);
  EXPECT_NE(line.find(named), std::string::npos) << line;
  EXPECT_LE(std::ranges::count(error.substr(at), '\n'), 2) << error;
  EXPECT_EQ(program.standard_output(), "");
}

TEST(StartupErrors, AreOneLineThatNamesTheFault) {
  const TempDir dir;
  const std::string missing = (dir.path() / "missing.gguf").string(), broken = (dir.path() / "broken.gguf").string();
  std::ofstream(broken) << "this is no model";
  const Listener taken;
  expect_refusal({"serve", "--port", "0", "-m", missing}, missing);
  expect_refusal({"serve", "--port", "0", "-m", broken}, broken);
  expect_refusal({"serve", "--no-such-flag"}, "--no-such-flag");
  expect_refusal({"serve", "-np", "many"}, "-np");
  expect_refusal({"serve", "--queue-limit", "-1"}, "--queue-limit");
  expect_refusal({"serve", "--slot-save-path", dir.path()}, "--slot-save-path");
  expect_refusal({"serve", "--cache-ram", "8192"}, "8192MiB");
  expect_refusal({"serve", "--host", "0.0.0.0", "--port", "0"}, "--api-key");
  expect_refusal({"serve", "--port", taken.port()}, taken.port());
  expect_refusal({"dance"}, "dance");
}

TEST(StartupErrors, HelpAndVersionAreNotErrors) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--help"}, {"serve", "--help"}, {"serve", "--help-llama"}, {"--version"}}) {
    Program program(args);
    EXPECT_EQ(program.wait(kLong), std::optional(0)) << args.back();
    EXPECT_FALSE(program.standard_output().empty()) << args.back();
    EXPECT_EQ(program.standard_error(), "") << args.back();
  }
}

}  // namespace
}  // namespace coppice::http_test
