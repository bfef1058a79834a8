// Where a sequence is, as JSON.
#pragma once

#include <optional>

#include "base/json_fwd.h"
#include "sched/inspector.h"

namespace coppice::api {

// {"kind":"slot","slot":2,"running":false}, {"kind":"pool","pool":"base"} or {"kind":"parked"}.
Json place_json(const sched::SequencePlace& place);
Json place_json(const std::optional<sched::SequencePlace>& place);  // null for none

}  // namespace coppice::api
