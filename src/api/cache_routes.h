// The tiers under the cells: what they hold, and writing all of it to the disk.
#pragma once

#include "api/call.h"
#include "api/inspection.h"

namespace coppice::api {

Result<Inspection> get_cache(const Call& call);         // GET /v1/cache
Result<Inspection> post_cache_flush(const Call& call);  // POST /v1/cache/flush; answers when everything is on disk

}  // namespace coppice::api
