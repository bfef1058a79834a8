// What this server generated, so that a client that sends it back, re-serialised, is continued from the exact tokens
// (spec B23), and so that the ids that it minted lead back to their session (B22).
//
// A turn is found by the digest of the conversation up to and including it, which the caller computes (the namespace is
// part of it). Bounded by turns and by bytes; the least recently used go first.
// Threading: thread-safe. mutex_ guards everything.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace coppice::session {

using Digest = std::array<unsigned char, 32>;

struct Turn {
  NamespaceId ns;
  std::string session;  // whose it is
  // The prompt that it answers: as text (its length and digest) and as the exact tokens.
  std::size_t prompt_bytes = 0;
  Digest prompt_digest{};
  std::shared_ptr<const Tokens> prompt;
  Tokens generated;  // without the token that ended it
  Token end_token = 0;
  // The message as it was parsed.
  std::string content, reasoning;
  struct Call {
    std::string id, name, arguments;
  };
  std::vector<Call> calls;
  std::vector<std::string> ids;  // all that it is known by: of the response, its items and its calls

  std::size_t bytes() const;
};

class TurnMemory {
 public:
  struct Limits {
    std::size_t turns_max = 4096;
    std::size_t bytes_max = std::size_t{64} << 20U;
  };
  explicit TurnMemory(Limits limits) : limits_(limits) {}

  // A newer turn of the same digest replaces the older one.
  void remember(const Digest& conversation, Turn turn);

  // Null if it is not known. Counts as a use.
  std::shared_ptr<const Turn> find(const Digest& conversation);

  // The session of the turn that minted the id; empty if it is not known.
  std::string session_of(NamespaceId ns, std::string_view id) const;

  std::size_t size() const;
  std::size_t bytes() const;

 private:
  struct Entry {
    Digest conversation;
    std::shared_ptr<const Turn> turn;
  };
  using Order = std::list<Entry>;  // most recently used first
  void drop(Order::iterator entry);

  const Limits limits_;
  mutable std::mutex mutex_;
  Order order_;
  std::map<Digest, Order::iterator> by_digest_;
  std::map<std::pair<NamespaceId, std::string>, Order::iterator, std::less<>> by_id_;
  std::size_t bytes_ = 0;
};

}  // namespace coppice::session
