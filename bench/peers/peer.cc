#include "peers/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "client/http.h"

namespace coppice::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStartMax{300'000}, kStopMax{60'000}, kLookAgain{10}, kFactsMax{30'000}, kEndingMax{1'000};

// A port that was free a moment ago.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int port = 0;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port = ntohs(address.sin_port);
  }
  ::close(fd);
  return port;
}

std::string tail_of(const std::filesystem::path& file) {
  constexpr std::size_t shown = 1500;
  std::ifstream in(file);
  std::string all((std::istreambuf_iterator<char>(in)), {});
  return all.size() > shown ? all.substr(all.size() - shown) : all;
}

}  // namespace

std::filesystem::path Peer::file(std::string_view suffix) const {
  return launch_->scratch / (name_ + std::string(suffix));
}

Status Peer::start(const ServerNeeds& needs) {
  if (!launch_) return read_facts();
  needs_ = needs;
  std::error_code error;
  std::filesystem::remove_all(file("-disk"), error);
  std::filesystem::create_directories(file("-disk"), error);
  if (error) return std::unexpected("cannot make " + file("-disk").string() + ": " + error.message());
  return launch();
}

Status Peer::launch() {
  const int port = free_port();
  url_ = {"127.0.0.1", std::to_string(port), ""};
  const std::vector<std::string> args = expand_command(launch_->command, {{"port", url_.port},
                                                                          {"model", launch_->model},
                                                                          {"cells", std::to_string(needs_.cells)},
                                                                          {"slots", std::to_string(needs_.slots)},
                                                                          {"threads", std::to_string(launch_->threads)},
                                                                          {"disk", file("-disk").string()}});
  if (args.empty()) return std::unexpected(name_ + " has an empty command");
  Result<Child> child = Child::start(args, file(".log"));
  if (!child) return std::unexpected(child.error());
  child_ = std::move(*child);
  if (const Status serving = wait_until_serving(); !serving) {
    return std::unexpected(name_ + ": " + serving.error() + "\n" + tail_of(file(".log")));
  }
  return read_facts();
}

Status Peer::wait_until_serving() {
  const auto deadline = std::chrono::steady_clock::now() + kStartMax;
  while (std::chrono::steady_clock::now() < deadline) {
    const auto health = fetch(url_, {.path = "/health", .body = {}, .silence_max = kFactsMax});
    if (health && health->status == 200) return {};
    if (!child_->running()) return std::unexpected("ended before it served");
    std::this_thread::sleep_for(kLookAgain);
  }
  return std::unexpected("did not serve in time");
}

Status Peer::read_facts() {
  const auto models = fetch(url_, {.path = "/v1/models", .body = {}, .silence_max = kFactsMax});
  if (!models) return std::unexpected(name_ + ": " + models.error());
  const Json list = Json::parse(models->body, nullptr, false);
  const auto first = Json::json_pointer("/data/0");
  if (!list.is_object() || !list.contains(first) || !list[first].contains("id")) {
    return std::unexpected(name_ + " lists no model at /v1/models");
  }
  model_ = list[first]["id"].get<std::string>();
  // The middle half of a vocabulary holds no control tokens. 32,000 is a small model's whole, where nothing is said.
  const auto n_vocab = list[first].value(Json::json_pointer("/meta/n_vocab"), 32'000);
  vocabulary_ = {n_vocab / 4, n_vocab / 4 * 3, n_vocab / 2};
  // A token that is whole text by itself, so that each of the answer's is sent at once.
  if (const auto letter = tokens("a"); letter && !letter->empty()) vocabulary_.answer = letter->back();
  return {};
}

std::optional<std::string> Peer::lost() {
  if (!launch_) {
    const auto models = fetch(url_, {.path = "/v1/models", .body = {}, .silence_max = kFactsMax});
    return models ? std::nullopt : std::optional<std::string>("does not answer any more");
  }
  // Its connections close a moment before it has ended.
  if (!child_ || !child_->wait(kEndingMax)) return std::nullopt;
  return child_->ending();
}

Result<Tokens> Peer::tokens(const std::string& text) const {
  // One of the names is the server's.
  const Json body = {{"content", text}, {"prompt", text}, {"parse_special", true}};
  const auto answer = fetch(url_, {.method = "POST", .path = "/tokenize", .body = body.dump()});
  if (!answer) return std::unexpected(name_ + ": " + answer.error());
  const Json ids = Json::parse(answer->body, nullptr, false);
  if (answer->status != 200 || !ids.is_object() || !ids.contains("tokens") || !ids["tokens"].is_array()) {
    return std::unexpected(name_ + " has no /tokenize: HTTP " + std::to_string(answer->status));
  }
  Tokens tokens;
  for (const Json& id : ids["tokens"]) {
    if (id.is_number_integer()) tokens.push_back(id.get<std::int32_t>());
  }
  return tokens;
}

void Peer::end(int signal) {
  if (!child_) return;
  child_->signal(signal);
  child_->wait(kStopMax);
  child_.reset();
}

void Peer::stop() {
  if (!launch_) return;
  end(SIGTERM);
  std::error_code ignored;
  std::filesystem::remove_all(file("-disk"), ignored);
}

Status Peer::restart(bool kill) {
  if (!launch_) return std::unexpected(name_ + " was not started by this program");
  end(kill ? SIGKILL : SIGTERM);
  return launch();
}

std::optional<double> Peer::gauge(std::string_view metric) const {
  const auto answer = fetch(url_, {.path = "/metrics", .body = {}, .silence_max = kFactsMax});
  if (!answer || answer->status != 200) return std::nullopt;
  const std::string line = "\n" + std::string(metric) + " ";
  const std::size_t at = ("\n" + answer->body).find(line);
  if (at == std::string::npos) return std::nullopt;
  return std::strtod(answer->body.c_str() + at + line.size() - 1, nullptr);
}

bool Peer::post(const std::string& path) const {
  const auto answer = fetch(url_, {.method = "POST", .path = path, .body = "{}"});
  return answer && answer->status == 200;
}

}  // namespace coppice::bench
