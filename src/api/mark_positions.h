// Where in a prompt's tokens the marks of its conversation stand.
//
// A mark ends with a message, which has no place of its own in the tokens: it is where all continuations of the
// conversation up to there agree (stable_prefix.h). Finding it costs two renderings, so it is remembered: of the last
// message it is the prompt's end, without rendering anything, and that is where agents put their marks; on the next
// turn the same mark is known.
//
// Bounded; the positions not used for longest go first. Thread-safe: the mutex guards everything.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "api/cache_marks.h"
#include "api/conversation.h"
#include "api/services.h"
#include "base/ids.h"
#include "base/json.h"
#include "sched/request.h"

namespace coppice::api {

class MarkPositions {
 public:
  explicit MarkPositions(std::size_t positions_max) : positions_max_(positions_max) {}

  // What to keep of `prompt`, which is `body`'s, shortest first. Marks whose place cannot be found are left out.
  // REQUIRES: `body` is normalised and gave `marks`; the prompt is not empty.
  std::vector<sched::PinWish> place(const std::vector<CacheMark>& marks, const Json& body, NamespaceId ns,
                                    const Tokens& prompt, const Services& services);

  std::size_t size() const;

 private:
  // The first tokens of a prompt: that they are the same is checked, so that no position is ever wrong.
  struct Position {
    TokenPos length = 0;
    Digest tokens{};
  };
  struct Entry {
    Digest conversation;
    Position position;
  };
  std::optional<TokenPos> find(const Digest& conversation, const Tokens& prompt);
  void remember(const Digest& conversation, const Position& position);

  const std::size_t positions_max_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::map<Digest, std::list<Entry>::iterator> by_conversation_;
};

}  // namespace coppice::api
