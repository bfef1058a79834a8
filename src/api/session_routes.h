// The routes about sessions: GET /v1/sessions, GET and DELETE /v1/sessions/{name}. All take ?cache_salt=.
#pragma once

#include "api/call.h"
#include "api/inspection.h"
#include "base/error.h"

namespace coppice::api {

Result<Inspection> list_sessions(const Call& call);  // ?limit=, 1 to 1000; most recently used first
Result<Inspection> get_session(const Call& call);
Result<Inspection> delete_session(const Call& call);

}  // namespace coppice::api
