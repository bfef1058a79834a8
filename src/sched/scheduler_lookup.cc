// Placement and lookup, which are two questions: in which slot a request would run, and from where it would start.
// Nothing here changes anything; admission acts on the answers, /v1/explain shows them.
#include <algorithm>

#include "sched/scheduler.h"

namespace coppice::sched {

Scheduler::Lookup Scheduler::look_up(const Tokens& prompt, const Placement& placement) const {
  return {prompt, placement, session_of(placement), sequences().tree().common(placement.ns, prompt)};
}

// Slot choice (spec A1).
kv::SlotChoice Scheduler::place(const Lookup& lookup) const {
  std::vector<kv::SlotView> views;
  views.reserve(slots().size());
  for (const Slot& s : slots()) {
    kv::SlotView view{.id = s.id, .busy = !!s.active, .last_used = s.last_used};
    if (const auto seq = residency_.of(s.id)) {
      view.empty = sequences().length(*seq) == 0;
      view.common = std::min(lookup.common[static_cast<std::size_t>(seq->value)], sequences().length(*seq));
    }
    views.push_back(view);
  }
  kv::SlotWish wish{.id_slot = lookup.placement.id_slot,
                    .session_slot = {},
                    .prompt_length = static_cast<TokenPos>(lookup.prompt.size()),
                    .similarity_min = options_.slot_prompt_similarity};
  if (lookup.session) wish.session_slot = slot_map_.slot_of(*lookup.session);
  return kv::choose_slot(views, wish);
}

// Everyone who holds a beginning of the prompt. Pools come first, as people want to see them used; then those that
// could be handed over as they are, parked ones; then idle slots', then running ones.
kv::ReuseQuery Scheduler::reuse_query(const Lookup& lookup, SlotId own_slot) const {
  const Placement& p = lookup.placement;
  const auto holder = [&](SeqId seq) {
    const TokenPos held = sequences().length(seq);
    return kv::Holder{seq, held, std::min(lookup.common[static_cast<std::size_t>(seq.value)], held)};
  };
  kv::ReuseQuery query{
      .prompt_length = static_cast<TokenPos>(lookup.prompt.size()),
      .cache_prompt = p.cache_prompt,
      .own = {},
      .named = {},
      .others = {},
      .can_resume = [this](SeqId seq, TokenPos length, TokenPos at) { return runner_.can_resume(seq, length, at); }};
  const auto own = residency_.of(own_slot);
  if (own) query.own = holder(*own);

  if (!p.pool.empty()) {
    const Pool* pool = residency_.pools().find(p.ns, p.pool);
    kv::ReuseQuery::Named named{.holder = {}, .prefix = query.prompt_length, .is_pool = true};
    if (pool != nullptr) {
      named.holder = holder(pool->seq());
      named.prefix = std::min(named.holder->held, query.prompt_length);
    }
    query.named = named;
  } else if (p.shared_pool_slot && p.shared_prefix_n_tokens > 0 && *p.shared_pool_slot != own_slot) {
    kv::ReuseQuery::Named named{.holder = {}, .prefix = std::min(p.shared_prefix_n_tokens, query.prompt_length)};
    if (const auto seq = residency_.of(*p.shared_pool_slot)) named.holder = holder(*seq);
    query.named = named;
  }

  const auto rank = [&](SeqId seq) {
    if (residency_.pools().of(seq) != nullptr) return 0;
    if (residency_.pins().contains(seq)) return 2;
    return residency_.is_parked(seq) ? 1 : sequences().leases().held(seq) ? 3 : 2;
  };
  std::vector<std::pair<int, kv::ReuseQuery::Other>> ranked;
  for (std::int32_t i = 0; i < sequences().count(); ++i) {
    const SeqId seq{i};
    if (lookup.common[static_cast<std::size_t>(i)] == 0 || seq == own) continue;
    const int its = rank(seq);
    ranked.push_back({its, {holder(seq), its == 0}});
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<int, kv::ReuseQuery::Other>::first);
  for (const auto& [its, other] : ranked) query.others.push_back(other);
  return query;
}

AdmissionFacts Scheduler::facts_of(const Lookup& lookup, const kv::SlotChoice& choice) const {
  AdmissionFacts facts{.rule = choice.rule,
                       .query = reuse_query(lookup, choice.slot.value_or(SlotId{0})),
                       .plan = {},
                       .restored = 0,
                       .last_prompt = nullptr,
                       .last_prompt_tokens = 0,
                       .has_session = lookup.session.has_value()};
  facts.plan = kv::plan_reuse(facts.query);
  if (lookup.session) {
    const auto* session = residency_.sessions().find(*lookup.session);
    if (session != nullptr) {
      facts.last_prompt = session->last_prompt.get();
      facts.last_prompt_tokens = session->prompt_tokens;
    }
  }
  return facts;
}

// The running request whose prompt, once computed, gives the most beyond the `reused` tokens that are held already; the
// waiting one holds nothing meanwhile (spec B16).
std::optional<PrefixWait> Scheduler::who_computes_more(const Lookup& lookup, TokenPos reused) const {
  if (!lookup.placement.cache_prompt) return std::nullopt;
  const TokenPos gain_min = lookup.placement.is_fork ? 1 : options_.coalesce_tokens_min;
  const auto most = static_cast<TokenPos>(lookup.prompt.size()) - 1;
  std::optional<PrefixWait> best;
  for (const Slot& s : slots_) {
    if (!s.active || !fills_prompt(s.active->phase)) continue;
    const TokenPos until = std::min(lookup.common[static_cast<std::size_t>(s.seq().value)], most);
    if (until <= held(s) || until - reused < gain_min || (best && until <= best->until)) continue;
    best = PrefixWait{.slot = s.id, .leader = s.active->request.id, .until = until};
  }
  return best;
}

}  // namespace coppice::sched
