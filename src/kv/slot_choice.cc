#include "kv/slot_choice.h"

#include <algorithm>

namespace coppice::kv {
namespace {

bool idle(std::span<const SlotView> slots, SlotId id) {
  return std::any_of(slots.begin(), slots.end(), [&](const SlotView& s) { return s.id == id && !s.busy; });
}

std::optional<SlotId> most_similar(std::span<const SlotView> slots, const SlotWish& wish) {
  std::optional<SlotId> best;
  float best_ratio = 0;
  for (const SlotView& s : slots) {
    if (s.busy || s.empty) continue;
    const float ratio = static_cast<float>(s.common) / static_cast<float>(wish.prompt_length);
    if (ratio > best_ratio && ratio > wish.similarity_min) {
      best_ratio = ratio;
      best = s.id;
    }
  }
  return best;
}

std::optional<SlotId> least_recent(std::span<const SlotView> slots) {
  const SlotView* oldest = nullptr;
  for (const SlotView& s : slots) {
    if (!s.busy && (oldest == nullptr || s.last_used <= oldest->last_used)) oldest = &s;
  }
  return oldest == nullptr ? std::nullopt : std::optional(oldest->id);
}

}  // namespace

SlotChoice choose_slot(std::span<const SlotView> slots, const SlotWish& wish) {
  if (wish.id_slot) {
    if (!idle(slots, *wish.id_slot)) return {};
    return {SlotRule::explicit_id, wish.id_slot};
  }
  if (wish.session_slot && idle(slots, *wish.session_slot)) return {SlotRule::session, wish.session_slot};
  if (wish.similarity_min != 0.0F) {
    if (auto slot = most_similar(slots, wish)) return {SlotRule::similarity, slot};
  }
  if (auto slot = least_recent(slots)) return {SlotRule::least_recent, slot};
  return {};
}

}  // namespace coppice::kv
