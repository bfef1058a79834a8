// What idle sequences cost (spec B19): their cells make every step slower, whoever's turn it is. That is their rent,
// and it is added up from when they were used last. A sequence that can be had again from host memory is let go when
// its rent comes to more than bringing it back costs, and saving it if it is not there yet: whoever does so never pays
// more than twice what somebody would who knew when it is asked for again (the argument of ski rental), and nothing has
// to be guessed about that. What host memory has no room for stays.
#include <prometheus/counter.h>

#include "obs/log.h"
#include "sched/scheduler.h"

namespace coppice::sched {

// A step that does both is some of each, and says nothing about either.
void Scheduler::note_step(Duration took) {
  const TokenPos decoding = count_decoding();
  const auto n = static_cast<TokenPos>(batch_.size());
  const TokenPos cells = sequences().cells().used();
  if (decoding == 0) costs_.note_prefill(n, cells, took);
  if (decoding == n) costs_.note_decode(cells, took);
  costs_.note_rent(n - decoding, decoding > 0);
}

// For a request that has `tokens` to compute, before its blocks are restored, so that its cells take the place of
// those.
void Scheduler::spill_idle(TokenPos tokens) {
  if (!tiering_.on()) return;
  const Residency::SeqSet wanted = wanted_sequences();
  for (std::int32_t i = 0; i < sequences().count(); ++i) {
    const SeqId seq{i};
    if (!sequences().in_use(seq) || sequences().leases().held(seq) || wanted.test(static_cast<std::size_t>(i)))
      continue;
    const TokenPos cells = sequences().cells().exclusive(seq);
    if (cells < options_.spill_cells_min) continue;
    const double rent_s = cells * (costs_.rent_s() - sequences().notes(seq).rent_from_s + costs_.rent_ahead_s(tokens));
    const double restoring_s = costs_.restoring_s(cells);
    if (rent_s <= restoring_s) continue;
    if (!tiering_.holds(seq) &&
        (rent_s <= restoring_s + costs_.saving_s(cells) || !tiering_.bring_to_host(seq, save_at_once())))
      continue;
    metrics_.sequences_spilled.Increment();
    metrics_.cells_spilled.Increment(cells);
    obs::log_debug("idle sequence spilled", "seq={} cells={} for_tokens={}", i, cells, tokens);
    residency_.drop(seq);
  }
}

}  // namespace coppice::sched
