// Sees to it that the known beginning of a conversation's next prompt (api/next_prompt.h) is computed while nobody
// waits (spec B25): takes the turns that were answered, finds the beginnings on one thread of its own, and hands them
// to the engine as background requests, which it runs when it has nothing else to do.
//
// Bounded: of a session only the newest turn waits, and of all so many; the oldest is dropped. A session that has gone
// on needs nothing prepared any more, see moved_on().
// Threading: thread-safe; add() and moved_on() return at once. mutex_ guards the queue and what is said of the turn at
// work. The thread starts with the first turn, and gives way to all others of the process where the system lets it.
//
//   a turn  | add()    | the thread   | moved_on(), newer turn | stop()
//   --------+----------+--------------+------------------------+----------
//   -       | waiting  |              |                        |
//   waiting |          | at work      | gone                   | gone
//   at work |          | submitted, - | withheld: -            | withheld: -
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "api/services.h"
#include "base/json.h"

namespace coppice::api {

struct AnsweredTurn {
  NamespaceId ns;
  std::string session;  // may be empty: then it is nobody's successor
  Json body;            // as it was rendered
  chat::Message answer;
  Tokens held;  // what the engine has computed of it: prompt and answer
};

class NextTurns {
 public:
  // `services` and all that it refers to must stay until stop().
  explicit NextTurns(const Services& services) : services_(services) {}
  ~NextTurns() { stop(); }
  NextTurns(const NextTurns&) = delete;
  NextTurns& operator=(const NextTurns&) = delete;

  void add(AnsweredTurn turn);

  // The session has sent its next prompt.
  void moved_on(NamespaceId ns, const std::string& session);

  // Nothing is submitted afterwards. Waits for a rendering that is going on.
  void stop();

  // Until nothing waits or is at work; for tests.
  void wait();

 private:
  void run();
  void work_on(const AnsweredTurn& turn, const std::stop_token& stop);
  void drop_waiting(NamespaceId ns, const std::string& session);
  void show_queue();

  const Services& services_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<AnsweredTurn> waiting_;  // oldest first
  std::size_t waiting_tokens_ = 0;
  bool at_work_ = false;
  std::stop_source work_;  // of the turn at work; stopped: it is not to be submitted
  NamespaceId ns_at_work_;
  std::string session_at_work_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace coppice::api
