// What the last conversations of a kind demanded of their answers: grammar, stop words, tokens to keep. Building these
// from many tools takes a template's code tens of milliseconds, and from turn to turn they are the same.
//
// Only ever a guess at what a rendering would say (api/chat_guess.h). Bounded; the least recently used go first.
// Threading: thread-safe. mutex_ guards everything.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "api/conversation.h"
#include "chat/chat.h"

namespace coppice::api {

class OutputRules {
 public:
  explicit OutputRules(std::size_t entries_max) : entries_max_(entries_max) {}

  // `kind`: a digest of what the rules depend on. The prompt is kept without its text.
  void remember(const Digest& kind, const chat::Prompt& prompt);
  std::shared_ptr<const chat::Prompt> find(const Digest& kind);  // null if it is not known

 private:
  struct Entry {
    Digest kind;
    std::shared_ptr<const chat::Prompt> prompt;
  };
  const std::size_t entries_max_;
  std::mutex mutex_;
  std::list<Entry> order_;  // most recently used first
  std::map<Digest, std::list<Entry>::iterator> by_kind_;
};

}  // namespace coppice::api
