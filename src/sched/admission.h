// What was known when a request was admitted; the report is made from it.
#pragma once

#include "kv/reuse_plan.h"
#include "kv/slot_choice.h"

namespace coppice::sched {

struct AdmissionFacts {
  kv::SlotRule rule = kv::SlotRule::wait;
  kv::ReuseQuery query;
  kv::ReusePlan plan;
  TokenPos restored = 0;                // taken from the tiers behind what the plan reuses; with a plan of cells only,
                                        // together with the state there
  const Tokens* last_prompt = nullptr;  // the session's previous one, as far as it is known; null if there is none
  TokenPos last_prompt_tokens = 0;      // how long it was
  bool has_session = false;
  TokenPos known() const { return plan.reused + restored; }  // of the prompt, what need not be computed
};

// What the largest part of what is reused comes from, with so many tokens from the tiers behind the plan's.
kv::Source source_of(const kv::ReusePlan& plan, TokenPos host, TokenPos disk);

// The verdict on one admission (spec A14).
struct Miss {
  kv::MissReason reason = kv::MissReason::none;
  TokenPos diverged_at = -1;  // for MissReason::diverged
};

// Why less was reused than could be hoped for. What could be hoped for:
//   - a pool or donor was named: the prefix that the request says it shares
//   - else, the session's previous prompt
//   - else, what the slot held, if it was chosen for that or by name
// and never the prompt's last token, which is always evaluated.
Miss explain_miss(const AdmissionFacts& facts, const Tokens& prompt);

}  // namespace coppice::sched
