// POST /v1/explain: what would happen to a completion request, without running it (spec A14). It takes the body and
// the headers of any of them: a chat if it has "messages", else a completion of its "prompt".
#pragma once

#include "api/call.h"
#include "api/inspection.h"
#include "base/error.h"

namespace coppice::api {

Result<Inspection> post_explain(const Call& call);

}  // namespace coppice::api
