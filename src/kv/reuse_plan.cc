#include "kv/reuse_plan.h"

#include <algorithm>

namespace coppice::kv {
namespace {

// offer(holder, limit, source) for everyone who may hold a beginning of the prompt, the most welcome first. `limit`: as
// much of it as the request says it shares.
template <class Offer>
void offer_all(const ReuseQuery& query, Offer&& offer) {
  if (query.own) offer(*query.own, query.prompt_length, Source::slot);
  if (query.named && query.named->holder) {
    offer(*query.named->holder, query.named->prefix, query.named->is_pool ? Source::pool : Source::donor);
  }
  for (const ReuseQuery::Other& other : query.others) {
    offer(other.holder, query.prompt_length, other.is_pool ? Source::pool : Source::donor);
  }
}

}  // namespace

ReusePlan plan_reuse(const ReuseQuery& query) {
  ReusePlan plan;
  if (!query.cache_prompt) return plan;

  TokenPos most = 0;  // that anyone has of the prompt, usable or not
  offer_all(query, [&](const Holder& holder, TokenPos limit, Source source) {
    const TokenPos at = std::min({holder.common, limit, query.prompt_length - 1});
    most = std::max(most, at);
    if (at <= plan.reused || !query.can_resume(holder.seq, holder.held, at)) return;
    plan.from = holder.seq;
    plan.reused = at;
    plan.source = source;
  });
  plan.not_rewindable = plan.reused < most;
  return plan;
}

ReusePlan plan_cells(const ReuseQuery& query, TokenPos until, const std::function<bool(SeqId)>& may_share) {
  ReusePlan plan{.from = {}, .reused = 0, .source = Source::none, .not_rewindable = false, .cells_only = true};
  TokenPos most = 0;
  offer_all(query, [&](const Holder& holder, TokenPos, Source source) {
    most = std::max(most, std::min(holder.common, query.prompt_length - 1));
    const TokenPos at = std::min(holder.common, until);
    if (at <= plan.reused || !may_share(holder.seq)) return;
    plan.from = holder.seq;
    plan.reused = at;
    plan.source = source;
  });
  plan.not_rewindable = until < most;
  return plan;
}

}  // namespace coppice::kv
