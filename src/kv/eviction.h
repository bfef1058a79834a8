// What is given up first when cells or sequences run out (spec B19, in its simplest form). Pure: the scheduler
// describes the sequences that nobody leases, the policy says how much each is worth.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/ids.h"

namespace coppice::kv {

// A sequence that could be given up.
struct Evictable {
  SeqId seq;
  TokenPos length = 0;           // tokens that it holds
  TokenPos exclusive = 0;        // cells that only it holds: what giving it up frees, and what would be computed again
  Duration idle{0};              // since it was last run in or shared from
  std::uint64_t last_touch = 0;  // order of the same; decides between equals
  std::int32_t uses = 0;         // requests that have gone on from it or from what it grew out of
  bool session_alive = false;    // it is where a session's latest request ended
  bool wanted = false;           // a waiting request names it as its donor or is placed on it
};

enum class Shortage : std::uint8_t { cells, sequences };

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  // The sequence worth least goes first. Finite, >= 0.
  virtual double worth(const Evictable& sequence, Shortage shortage) const = 0;
};

// Worth is the expected cost of computing the sequence again, per cell that giving it up would free:
//
//   chance of being asked for again  x  cost of a token at this length
//
// The chance falls with the square root of the time since the last use (half at three minutes, a quarter at fifteen): a
// power law fits agents, whose pauses range from milliseconds to a lunch break, better than an exponential. It is 4
// times higher where a session is alive, 4 times higher again once the sequence has been used before, and higher the
// longer it is (twice at 2,048 tokens): long prompts are agents', which come back, short ones are often asked once. The
// cost of a token grows with the length, because attention does: twice at 8,192 tokens.
//
// When sequences run out rather than cells, the whole cost counts: a tail of three tokens goes before a conversation.
class RecomputeCostPolicy final : public EvictionPolicy {
 public:
  double worth(const Evictable& sequence, Shortage shortage) const override;
};

// The one to give up; a wanted one only if there is no other. For cells, one that frees some at once if there is any:
// cells that only sequences on this list share become free with the last of them.
// Of equal ones the least recently touched. Nothing if there is none.
std::optional<SeqId> choose_victim(std::span<const Evictable> sequences, Shortage shortage,
                                   const EvictionPolicy& policy);

}  // namespace coppice::kv
