// The request fields that say where a completion should run and which KV it may share (spec A1, A5-A12).
#pragma once

#include "api/call.h"
#include "base/error.h"
#include "base/json_fwd.h"
#include "sched/request.h"

namespace coppice::api {

// Reads session_id (or a session header), parent_session_id, id_slot, cache_prompt, shared_pool_slot,
// shared_prefix_n_tokens, pool and cache_salt. Errors: invalid_request naming the field; slots are checked to exist.
Result<sched::Placement> read_placement(const Json& body, const Call& call);

}  // namespace coppice::api
