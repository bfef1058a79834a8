// How much of a prompt need not be computed, and where its KV comes from (spec A4-A11). Pure: placement was decided
// before (slot_choice.h), tokens were compared before (`common`), and nothing has been changed yet.
#pragma once

#include <functional>
#include <optional>

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
  TokenPos prompt_length = 0;   // >= 1
  bool cache_prompt = true;     // false: nothing is reused (A5)
  Holder own;                   // the chosen slot's sequence
  std::optional<Holder> pool;   // the donor that the request names (A7), if it is not its own slot
  TokenPos pool_prefix = 0;     // P: how much of the donor the request says it shares
  std::optional<Holder> other;  // a busy sequence of the same session (A6) or the first of n completions
  // Whether the model's memory can go on at `at` from this sequence of `length` tokens.
  std::function<bool(SeqId seq, TokenPos length, TokenPos at)> can_resume;
  bool can_fold = false;  // whether own cells may be exchanged for equal ones of a donor in the middle of a sequence
};

struct ReusePlan {
  TokenPos keep = 0;           // tokens of the own sequence that stay
  std::optional<SeqId> donor;  // whose cells are shared
  TokenPos share = 0;          // [0, share) of the donor; > 0 exactly if `donor` is set
  // share <= keep: the own copy of [0, share) is given up for the donor's cells ("fold"); nothing is computed for it.
  // share >  keep: keep is 0; the own sequence is cleared and starts from the donor's prefix.
  Source source = Source::none;  // where the tokens that need no computing come from
  bool not_rewindable = false;   // more was held, but the memory cannot go back to that point
  TokenPos reused() const { return share > keep ? share : keep; }
};

// Takes the longest prefix that is held, and shares instead of duplicating where a donor was named.
// At least one prompt token is left to evaluate, so that there are logits (A7).
ReusePlan plan_reuse(const ReuseQuery& query);

}  // namespace coppice::kv
