// Where the end of a sequence cannot be cut off (recurrent, hybrid, sliding-window models), what was computed can be
// gone on from where it ends and nowhere else. So its state is saved on the way, at the places where another prompt is
// likely to leave this one (spec B21).
#include <algorithm>

#include "sched/scheduler.h"

namespace coppice::sched {
namespace {

// A step takes only what the window had left behind before it, so it need not end just at a checkpoint. It may be
// computed in parts, though, and the window moves on with each: so only where few tokens follow.
constexpr TokenPos kWindowSlack = 32;

}  // namespace

// Of a prompt whose first `known` tokens need not be computed: each few thousand tokens, as an edited or forked
// conversation goes on from anywhere; where the history ends, as the next turn may be rendered otherwise from there;
// and where that is not known, before the last token, for the same prompt again.
std::vector<TokenPos> Scheduler::checkpoints_of(const Active& a, TokenPos known) const {
  std::vector<TokenPos> at;
  const Placement& p = a.request.placement;
  if (!tiering_.has_checkpoints() || !p.cache_prompt) return at;
  const TokenPos length = a.input_length(), every = options_.checkpoint_tokens;
  TokenPos last = 0;
  if (p.history > known && p.history < length) {
    last = p.history;
  } else if (p.history == 0 && !a.request.make_pool && length - 1 - known >= options_.checkpoint_tokens_min) {
    last = length - 1;
  }
  const TokenPos end = last > 0 ? last : length;
  for (TokenPos next = (known / every + 1) * every; next + options_.checkpoint_tokens_min <= end; next += every)
    at.push_back(next);
  if (last > 0) at.push_back(last);
  return at;
}

// Where the request's next step has to end.
std::optional<TokenPos> Scheduler::checkpoint_stop(const Active& a) const {
  if (a.checkpoints_done == a.checkpoints.size()) return std::nullopt;
  const TokenPos at = a.checkpoints[a.checkpoints_done];
  const bool slack = runner_.info().rewind == engine::Rewind::window && a.input_length() - at <= kWindowSlack;
  return slack ? std::nullopt : std::optional(at);
}

void Scheduler::save_checkpoints(Active& a) {
  const SeqId seq = a.lease.seq();
  const TokenPos held = sequences().length(seq);
  for (; a.checkpoints_done < a.checkpoints.size() && a.checkpoints[a.checkpoints_done] <= held; ++a.checkpoints_done) {
    const TokenPos at = a.checkpoints[a.checkpoints_done];
    // Those on the way are many, most of them thinned out again before long: not for the disk.
    const bool durable = a.session() && at == a.checkpoints.back();
    if (runner_.can_resume(seq, held, at)) tiering_.checkpoint(seq, at, durable);
  }
}

}  // namespace coppice::sched
