// The request fields that say where a completion should run and which KV it may share (spec A1, A5-A11).
#pragma once

#include <string>

#include "api/auth.h"
#include "api/http.h"
#include "api/services.h"
#include "base/error.h"
#include "base/json_fwd.h"
#include "sched/request.h"

namespace coppice::api {

struct PlacementFields {
  sched::Placement placement;
  std::string parent_session;  // whose sub-agent this is; only reported for now
};

// Reads session_id (or a session header), parent_session_id, id_slot, cache_prompt, shared_pool_slot,
// shared_prefix_n_tokens and cache_salt. `key` comes from Keyring::authorize. Errors: invalid_request naming the field;
// slots are checked to exist.
Result<PlacementFields> read_placement(const Json& body, const HttpRequest& request, std::string_view key,
                                       const Keyring& keyring, const Services& services);

}  // namespace coppice::api
