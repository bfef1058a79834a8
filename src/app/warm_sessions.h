// After a start the conversations that were used last are read from disk, and what is missing of them is computed,
// while nobody waits (spec B25): their next turns begin with what is in memory.
#pragma once

#include "api/context.h"

namespace coppice::app {

// Begins and returns. As many of the most recent sessions as have half of the cells together, of those whose last
// prompts are known to the end.
void start_warm_sessions(const api::Context& context);

}  // namespace coppice::app
