#include "api/place_json.h"

#include "base/json.h"

namespace coppice::api {

Json place_json(const sched::SequencePlace& place) {
  if (place.slot) return {{"kind", "slot"}, {"slot", place.slot->value}, {"running", place.running}};
  if (!place.pool.empty()) return {{"kind", "pool"}, {"pool", place.pool}};
  return {{"kind", place.pinned ? "pinned" : "parked"}};
}

Json place_json(const std::optional<sched::SequencePlace>& place) { return place ? place_json(*place) : Json(nullptr); }

}  // namespace coppice::api
