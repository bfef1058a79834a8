// A server that is measured: one that runs somewhere, or one that is started for each measurement.
//
// Owner: the run; scenarios borrow it. Threading: start, stop and the like on the thread that made it; complete() and
// what else is const on any number of threads while it is started.
//
//   state     entered by             allows
//   stopped   the constructor, stop  start
//   started   start                  complete, gauge, restart, stop
//
// A server that runs somewhere is always there: start only asks it for its facts, stop does nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "client/completion.h"
#include "peers/child.h"

namespace coppice::bench {

// What a scenario wants a server to be started with.
struct ServerNeeds {
  int cells = 8192;  // KV cells, for all slots together
  int slots = 4;
};

// The rest of a command's placeholders.
struct Launch {
  std::string command;  // with {port} {model} {cells} {slots} {threads} {disk}
  std::string model;
  int threads = 2;
  std::filesystem::path scratch;  // for logs and {disk}; exists
};

class Peer {
 public:
  Peer(std::string name, Url url) : name_(std::move(name)), url_(std::move(url)) {}
  Peer(std::string name, Launch launch) : name_(std::move(name)), launch_(std::move(launch)) {}
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() { stop(); }

  const std::string& name() const { return name_; }
  bool can_restart() const { return launch_.has_value(); }
  const Vocabulary& vocabulary() const { return vocabulary_; }

  // With an empty {disk}; waits until it serves.
  Status start(const ServerNeeds& needs);
  void stop();
  // Ends it, as its user would or with kill -9, and starts it again with what {disk} holds.
  Status restart(bool kill);

  Result<Completion> complete(const CompletionRequest& request) const {
    return bench::complete(url_, request, model_, vocabulary_);
  }
  // After an error: how the server is gone, if it is: "was killed by signal 9".
  std::optional<std::string> lost();
  // As the server's /tokenize cuts it; special tokens by their names.
  Result<Tokens> tokens(const std::string& text) const;
  // A value of /metrics, without labels; nothing if the server has none of that name.
  std::optional<double> gauge(std::string_view metric) const;
  // POSTs nothing there; whether the server knew it.
  bool post(const std::string& path) const;

 private:
  Status launch();
  Status wait_until_serving();
  Status read_facts();
  void end(int signal);
  std::filesystem::path file(std::string_view suffix) const;

  std::string name_;
  Url url_;
  std::optional<Launch> launch_;
  std::optional<Child> child_;
  ServerNeeds needs_;
  std::string model_;
  Vocabulary vocabulary_;
};

}  // namespace coppice::bench
