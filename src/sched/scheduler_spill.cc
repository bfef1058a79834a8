// What is on the device and cheaper elsewhere (spec B19): cells of idle sequences make every step slower, whoever's
// turn it is. Those that host memory has, too, are let go when that gains more than bringing them back will cost.
#include <prometheus/counter.h>

#include <algorithm>

#include "obs/log.h"
#include "sched/scheduler.h"

namespace coppice::sched {

// A step that does both is some of each, and says nothing about either.
void Scheduler::note_step(Duration took) {
  const auto decoding =
      std::ranges::count_if(slots_, [](const Slot& s) { return s.active && s.active->phase == Phase::decoding; });
  const auto n = static_cast<std::int64_t>(batch_.size());
  const TokenPos cells = sequences().cells().used();
  if (decoding == 0) costs_.note_prefill(static_cast<TokenPos>(n), cells, took);
  if (decoding == n) costs_.note_decode(cells, took);
}

// Before a request that has `tokens` to compute, so that its cells take the place of those.
void Scheduler::spill_idle(TokenPos tokens) {
  if (!tiering_.on()) return;
  const Residency::SeqSet wanted = wanted_sequences();
  for (std::int32_t i = 0; i < sequences().count(); ++i) {
    const SeqId seq{i};
    if (!sequences().in_use(seq) || sequences().leases().held(seq) || wanted.test(static_cast<std::size_t>(i)))
      continue;
    const TokenPos cells = sequences().cells().exclusive(seq);
    if (cells < options_.spill_cells_min || !costs_.worth_spilling(cells, tokens) || !tiering_.holds(seq)) continue;
    metrics_.sequences_spilled.Increment();
    metrics_.cells_spilled.Increment(cells);
    obs::log_debug("sequence spilled", "seq={} cells={} for_tokens={}", i, cells, tokens);
    residency_.drop(seq);
  }
}

}  // namespace coppice::sched
