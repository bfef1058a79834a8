// The open connections of one server: who is admitted, and who must still end before the server may. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace coppice::net {

class Session;

enum class Admission : std::uint8_t {
  serve,
  refuse,  // over the limit: answer 503 and close
  drop,    // so far over the limit that not even refusals are affordable, or the server is stopping: just close
};

class Connections {
 public:
  explicit Connections(std::size_t served_max) : served_max_(served_max) {}

  Admission admit(const std::shared_ptr<Session>& session);
  void leave(Session* session);  // from the session's destructor; does nothing for one that was dropped

  void stop_admitting();
  bool stopping() const;
  std::vector<std::shared_ptr<Session>> all() const;

  // False if some connection is still open after `patience`.
  bool wait_until_none(std::chrono::milliseconds patience);
  void wait_until_none();

 private:
  struct Entry {
    std::weak_ptr<Session> session;
    Admission admission;
  };

  const std::size_t served_max_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable none_left_;
  std::unordered_map<Session*, Entry> entries_;
  std::size_t served_ = 0;
  bool stopping_ = false;
};

}  // namespace coppice::net
