// What was known when a request was admitted; the report is made from it.
#pragma once

#include "kv/reuse_plan.h"
#include "kv/slot_choice.h"

namespace coppice::sched {

struct AdmissionFacts {
  kv::SlotRule rule = kv::SlotRule::wait;
  kv::ReuseQuery query;
  kv::ReusePlan plan;
};

// The verdict on one admission (spec A14).
struct Miss {
  kv::MissReason reason = kv::MissReason::none;
  TokenPos diverged_at = -1;  // for MissReason::diverged
};

// Why less was reused than could be hoped for. `last_prompt`: the session's previous prompt, null if there is none;
// `has_session`: whether the request has a session at all. What could be hoped for:
//   - a donor was named: the prefix that the request says it shares
//   - else, the session's previous prompt
//   - else, what the slot held, if it was chosen for that or by name
// and never the prompt's last token, which is always evaluated.
Miss explain_miss(const AdmissionFacts& facts, const Tokens& prompt, const Tokens* last_prompt, bool has_session);

}  // namespace coppice::sched
