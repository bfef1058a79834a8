// Which slot a request runs in (spec A1, A3). One pure rule; affinity decides *where*, never how much is reused.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"

namespace coppice::kv {

struct SlotView {
  SlotId id;
  bool busy = false;
  bool empty = true;            // holds no tokens
  TokenPos common = 0;          // tokens that it has in common with the start of the prompt
  std::int64_t last_used = -1;  // grows with every release; -1: never used
};

struct SlotWish {
  std::optional<SlotId> id_slot;       // explicit
  std::optional<SlotId> session_slot;  // the slot last used by this session
  TokenPos prompt_length = 0;
  float similarity_min = 0.1F;  // 0 turns the similarity step off
};

enum class SlotRule : std::uint8_t { wait, explicit_id, session, similarity, least_recent };

struct SlotChoice {
  SlotRule rule = SlotRule::wait;
  std::optional<SlotId> slot;  // set unless the request has to wait
};

// The first of these that gives an idle slot:
//   1. wish.id_slot; if it is busy, the request waits for it
//   2. wish.session_slot
//   3. the slot that has the largest share of the prompt (common / prompt length), if that is more than similarity_min;
//      empty slots do not count; of equal ones the first in order
//   4. the least recently used; of equal ones the last in order
// Steps 3 and 4 are what llama-server v0.4.0 does, in the same arithmetic (float division), so that a request without
// session takes the same slot there and here.
// REQUIRES: `slots` in order of id; wish.id_slot names one of them; wish.prompt_length >= 1.
SlotChoice choose_slot(std::span<const SlotView> slots, const SlotWish& wish);

}  // namespace coppice::kv
