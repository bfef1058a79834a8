// Who of those that wait for a slot is tried first. In order of arrival, sessions that take turns use a cache as badly
// as can be: each finds its KV gone, the longest unused. So those go first whose prompts are known best, as an agent's
// next step, and their KV is used before it has to give way. What would take long waits longer, but not for ever.
//
// Pure. Source of the figures: docs/simulation.md, "Who goes first".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace coppice::sched {

// One that waits.
struct Waiting {
  TokenPos to_compute = 0;       // of its prompt, what is held nowhere
  std::int32_t overtaken = 0;    // by later ones
  bool waits_for_cells = false;  // it was tried, and nobody may overtake it now
};

// The order to try them in, as indices. `queue` is in order of arrival. First come, in order of arrival, those that
// were overtaken `overtake_limit` times, and all up to one that waits for cells; then the others, those with the fewest
// tokens to compute first, and of equal ones the older.
std::vector<std::size_t> queue_order(std::span<const Waiting> queue, std::int32_t overtake_limit);

}  // namespace coppice::sched
