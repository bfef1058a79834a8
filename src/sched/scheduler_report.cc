// What an admission is reported as (spec A13, A14).
#include <prometheus/counter.h>

#include <algorithm>

#include "obs/log.h"
#include "sched/scheduler.h"

namespace coppice::sched {

void Scheduler::report_admission(Active& a, const AdmissionFacts& facts) {
  if (a.started) return;  // after a pause the first admission's counts stand; recomputing shows as `computed`
  if (!a.request.background && facts.plan.from) a.report.prepared = use_prepared(*facts.plan.from, facts.plan.reused);
  Report& report = a.report;
  const TokenPos own = std::clamp(facts.plan.reused, a.replaced_begin, a.replaced_end) - a.replaced_begin;
  const TokenPos reused = facts.plan.reused - own;
  report.computed += own;
  report.source = reused > 0 ? facts.plan.source : kv::Source::none;
  switch (report.source) {
    case kv::Source::slot: report.reused_slot = reused; break;
    case kv::Source::donor: report.reused_donor = reused; break;
    case kv::Source::pool: report.reused_pool = reused; break;
    default: break;
  }
  if (a.request.background) return;
  if (report.prepared > 0) report.source = kv::Source::prepared;
  // One of n completions starts from another one's prompt; there is nothing to explain unless that failed.
  const bool forked = a.request.placement.is_fork && facts.plan.reused == a.input_length() - 1;
  const Miss miss = forked ? Miss{} : explain_miss(facts, *a.input);
  report.reason = miss.reason;
  report.diverged_at = miss.diverged_at;
  if (report.diverged_at >= 0) report.diverged_text = text_window(*a.input, report.diverged_at);
  if (report.reason != kv::MissReason::none) metrics_.count_miss(kv::name(report.reason).data());
  if (report.reason == kv::MissReason::not_resident) {
    obs::log_warn("named prefix is not held", "id={} pool=\"{}\" donor={} reused={}", a.request.id.value,
                  a.request.placement.pool, a.request.placement.shared_pool_slot.value_or(SlotId{-1}).value,
                  facts.plan.reused);
  }
  if (!a.without_tiers) metrics_.prompt_tokens.Increment(report.prompt_tokens);  // else it was counted before
  metrics_.prompt_tokens_reused[0]->Increment(report.reused_slot);
  metrics_.prompt_tokens_reused[1]->Increment(report.reused_donor);
  metrics_.prompt_tokens_reused[2]->Increment(report.reused_pool);
}

// A few tokens of the prompt before and after an index, as text.
std::string Scheduler::text_window(const Tokens& prompt, TokenPos at) const {
  constexpr TokenPos kEachSide = 12;
  const TokenPos begin = std::max(0, at - kEachSide);
  const TokenPos end = std::min(static_cast<TokenPos>(prompt.size()), at + kEachSide);
  return text_of({prompt.begin() + begin, prompt.begin() + end});
}

}  // namespace coppice::sched
