// A simulated server: takes prompts, moves the clock by what its work would take, and says when answers begin and end.
//
// Owner: one Replay. Threading: none. The clock is moved by step() alone, and by the replay while the server is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/ids.h"

namespace coppice::simulate {

struct Ask {
  std::uint64_t id = 0;
  std::string session;
  std::shared_ptr<const Tokens> prompt;
  Tokens answer;  // what the model will say; at least one token
};

// How much of a machine a server has. Both kinds of bytes are counted in tokens' KV.
struct Room {
  int cells = 0;  // on the device
  int slots = 4;
  std::int64_t host_tokens = 0;
};

// Called from within step(); must not call back.
struct Listener {
  std::function<void(std::uint64_t id)> on_first;                        // the answer's first token
  std::function<void(std::uint64_t id, std::int64_t computed)> on_done;  // with so many prompt tokens evaluated
};

class Server {
 public:
  virtual ~Server() = default;
  virtual void submit(Ask ask) = 0;
  // Does the next piece of work. False if there is none.
  virtual bool step() = 0;
};

}  // namespace coppice::simulate
