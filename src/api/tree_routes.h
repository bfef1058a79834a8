// GET /v1/tree: the caller's prefix tree, as nested nodes. ?depth=, 1 to 64; ?nodes=, 1 to 2000; ?cache_salt=.
#pragma once

#include "api/call.h"
#include "api/inspection.h"
#include "base/error.h"

namespace coppice::api {

Result<Inspection> get_tree(const Call& call);

}  // namespace coppice::api
