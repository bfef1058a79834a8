// How much of a prompt need not be computed, and where its KV comes from (spec A4-A12, B15). Pure: placement was
// decided before (slot_choice.h), tokens were compared before (`common`), and nothing has been changed yet.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "kv/reuse.h"

namespace coppice::kv {

// A sequence that may hold a beginning of the prompt.
struct Holder {
  SeqId seq;
  TokenPos held = 0;    // tokens that it holds
  TokenPos common = 0;  // of those, how many are the prompt's first tokens; 0 across namespaces
};

struct ReuseQuery {
  TokenPos prompt_length = 0;  // >= 1
  bool cache_prompt = true;    // false: nothing is reused (A5)
  std::optional<Holder> own;   // the chosen slot's sequence, if it has one

  // The prefix that the request names: a pool, or another slot as donor.
  struct Named {
    std::optional<Holder> holder;  // none: there is no such pool, or the slot is empty
    TokenPos prefix = 0;           // P: how much of it the request says it shares
    bool is_pool = false;
  };
  std::optional<Named> named;

  // Everyone else, most welcome first.
  struct Other {
    Holder holder;
    bool is_pool = false;
  };
  std::vector<Other> others;

  // Whether the model's memory can go on at `at` from this sequence of `length` tokens.
  std::function<bool(SeqId seq, TokenPos length, TokenPos at)> can_resume;
};

struct ReusePlan {
  std::optional<SeqId> from;     // whose first `reused` tokens are used, maybe the own sequence; set if reused > 0
  TokenPos reused = 0;           // < prompt_length: one token is always evaluated, so that there are logits (A7)
  Source source = Source::none;  // what `from` is to this request
  bool not_rewindable = false;   // more was held, but the memory cannot go back to that point
  bool cells_only = false;       // the memory cannot go on there before a checkpoint was restored (spec B21)
};

// Takes the longest prefix that is held anywhere. Of equally long ones: the own sequence, the named one, the others in
// order.
ReusePlan plan_reuse(const ReuseQuery& query);

// Takes the longest prefix that is held anywhere, at most `until`, whether or not the memory can go on there: a
// checkpoint at `until` is restored behind its cells. `may_share`: a holder that can be shared from.
ReusePlan plan_cells(const ReuseQuery& query, TokenPos until, const std::function<bool(SeqId)>& may_share);

}  // namespace coppice::kv
