// POST /v1/sessions/{id}/warm: the KV of what a session is expected to send is prepared while nobody waits (spec B25).
#pragma once

#include "api/call.h"
#include "api/inspection.h"
#include "base/error.h"

namespace coppice::api {

// The body is a request of any API, as the client expects to send it, or the beginning of one: where a chat does not
// end with something to answer, what every chat begins with that begins so. Answers 202 at once: {session, tokens,
// held, to_compute}. Errors: as for the request itself; overloaded, unavailable.
Result<Inspection> post_warm(const Call& call);

}  // namespace coppice::api
