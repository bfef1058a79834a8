#include "kv/reuse_plan.h"

#include <algorithm>

namespace coppice::kv {
namespace {

// What a holder has of the prompt, and how much of that decoding can go on from.
struct Offer {
  TokenPos held = 0;
  TokenPos usable = 0;
};

Offer offer(const ReuseQuery& query, const Holder& holder, TokenPos limit) {
  const TokenPos at = std::max(0, std::min({holder.common, limit, query.prompt_length - 1}));
  const bool resumable = at > 0 && query.can_resume(holder.seq, holder.held, at);
  return {at, resumable ? at : 0};
}

}  // namespace

ReusePlan plan_reuse(const ReuseQuery& query) {
  ReusePlan plan;
  if (!query.cache_prompt) return plan;

  const Offer own = offer(query, query.own, query.prompt_length);
  const Offer pool = query.pool ? offer(query, *query.pool, query.pool_prefix) : Offer{};
  const Offer other = query.other ? offer(query, *query.other, query.prompt_length) : Offer{};
  const TokenPos best = std::max({own.usable, pool.usable, other.usable});

  if (own.usable == best) {
    plan.keep = best;
    plan.source = best > 0 ? Source::slot : Source::none;
    // The caller says that the donor's prefix is the one to share: N agents then hold it once (A8), whoever computed
    // it.
    if (pool.usable > 0 && query.can_fold) {
      plan.donor = query.pool->seq;
      plan.share = pool.usable;
    }
  } else {
    plan.donor = pool.usable == best ? query.pool->seq : query.other->seq;
    plan.share = best;
    plan.source = Source::donor;
  }
  plan.not_rewindable = best < std::max({own.held, pool.held, other.held});
  return plan;
}

}  // namespace coppice::kv
