// The routes about named pools: POST and GET /v1/pools, GET and DELETE /v1/pools/{name} (spec A12). Those without body
// take ?cache_salt=.
#pragma once

#include "api/call.h"
#include "api/exchange.h"
#include "api/inspection.h"
#include "base/error.h"

namespace coppice::api {

// Making a pool is an exchange that generates nothing: it waits for its turn, and ends early when its client leaves.
Result<CompletionPlan> plan_pool(const Call& call);

Result<Inspection> list_pools(const Call& call);
Result<Inspection> get_pool(const Call& call);
Result<Inspection> delete_pool(const Call& call);

}  // namespace coppice::api
