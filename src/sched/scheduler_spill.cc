// What idle sequences cost (spec B19): their cells make every step slower, whoever's turn it is. That is their rent,
// and it is added up from when they were used last. A sequence whose rent comes to more than having it again would cost
// is given up: whoever does so never pays more than twice what somebody would who knew when it is asked for again (the
// argument of ski rental), and nothing has to be guessed about that.
//
//   host memory has all of it   having it again is restoring it; it is spilled
//   it has not                  having it again is computing it; it is saved as far as there is room, and evicted
#include <prometheus/counter.h>

#include <algorithm>

#include "obs/log.h"
#include "sched/scheduler.h"

namespace coppice::sched {

// A step that does both is some of each, and says nothing about either.
void Scheduler::note_step(Duration took) {
  const auto decoding = static_cast<TokenPos>(
      std::ranges::count_if(slots_, [](const Slot& s) { return s.active && s.active->phase == Phase::decoding; }));
  const auto n = static_cast<TokenPos>(batch_.size());
  const TokenPos cells = sequences().cells().used();
  if (decoding == 0) costs_.note_prefill(n, cells, took);
  if (decoding == n) costs_.note_decode(cells, took);
  costs_.note_rent(n - decoding, decoding > 0);
}

// Before a request that has `tokens` to compute, so that its cells take the place of those.
void Scheduler::spill_idle(TokenPos tokens) {
  const Residency::SeqSet wanted = wanted_sequences();
  for (std::int32_t i = 0; i < sequences().count(); ++i) {
    const SeqId seq{i};
    if (!sequences().in_use(seq) || sequences().leases().held(seq) || wanted.test(static_cast<std::size_t>(i)))
      continue;
    const TokenPos cells = sequences().cells().exclusive(seq);
    if (cells < options_.spill_cells_min) continue;
    const double rent_s = cells * (costs_.rent_s() - sequences().notes(seq).rent_from_s + costs_.rent_ahead_s(tokens));
    const bool in_host = rent_s > costs_.restoring_s(cells) && tiering_.on() && tiering_.holds(seq);
    if (!in_host && rent_s <= costs_.computing_s(cells, sequences().cells().used() - cells)) continue;
    obs::log_debug("idle sequence given up", "seq={} cells={} for_tokens={} in_host={}", i, cells, tokens, in_host);
    if (in_host) {
      metrics_.sequences_spilled.Increment();
      metrics_.cells_spilled.Increment(cells);
      residency_.drop(seq);
    } else {
      residency_.give_up(seq);
    }
  }
}

}  // namespace coppice::sched
