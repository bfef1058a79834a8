// What one engine step evaluates. Pure policy: decoding requests first, one token each, so that no stream waits for
// another's long prompt; then as much prefill as the step's bound allows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace coppice::sched {

struct PrefillNeed {
  TokenPos remaining = 0;  // prompt tokens not evaluated yet, > 0
  TokenPos urgent = 0;     // of those, how many until somebody can go on: the request itself, or one that waits for its
                           // prefix; 1 .. remaining
};

// How many prompt tokens each prefilling request gets in this step; `needs` in order of arrival, result in the same
// order.
//
// Half of the budget goes to the request that has least left until somebody can go on, the rest in order of arrival: a
// short turn is not stuck behind a long cold prompt, and the long one still gets at least half of every step.
std::vector<TokenPos> share_prefill(std::span<const PrefillNeed> needs, TokenPos budget);

}  // namespace coppice::sched
