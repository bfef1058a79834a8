// What an admission is reported as (spec A13, A14).
#include <prometheus/counter.h>

#include "sched/scheduler.h"

namespace coppice::sched {

void Scheduler::explain(Active& a, const AdmissionFacts& facts) {
  if (a.started) return;  // after a pause the first admission's counts stand; recomputing shows as `computed`
  Report& report = a.report;
  const TokenPos reused = facts.plan.reused();
  report.source = facts.plan.source;
  if (report.source == kv::Source::slot) report.reused_slot = reused;
  if (report.source == kv::Source::donor) report.reused_donor = reused;

  const auto session = a.session();
  const auto last_prompt = session ? history_.last_prompt(*session) : nullptr;
  const Miss miss = explain_miss(facts, *a.input, last_prompt.get(), session.has_value());
  // One of n completions starts from the first one's prompt; there is nothing to explain unless that failed.
  const bool forked = a.request.placement.fork_of.has_value() && reused == a.input_length() - 1;
  if (!forked) {
    report.reason = miss.reason;
    report.diverged_at = miss.diverged_at;
  }
  if (report.diverged_at >= 0) report.diverged_text = text_window(*a.input, report.diverged_at);
  if (report.reason != kv::MissReason::none) metrics_.count_miss(kv::name(report.reason).data());

  metrics_.prompt_tokens.Increment(report.prompt_tokens);
  metrics_.prompt_tokens_reused[0]->Increment(report.reused_slot);
  metrics_.prompt_tokens_reused[1]->Increment(report.reused_donor);
}

// A few tokens of the prompt before and after an index, as text.
std::string Scheduler::text_window(const Tokens& prompt, TokenPos at) const {
  constexpr TokenPos kEachSide = 12;
  std::string text;
  const TokenPos end = std::min(static_cast<TokenPos>(prompt.size()), at + kEachSide);
  for (TokenPos i = std::max(0, at - kEachSide); i < end; ++i) {
    text += tokenizer_.piece(prompt[static_cast<std::size_t>(i)], true);
  }
  return text;
}

}  // namespace coppice::sched
