// The pools of --pool FILE, computed in the background: one after the other, so that requests find the other slots
// free, and what two pools have in common is there when the second begins. Each is made for every API key, as KV is
// never shared between two of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/context.h"
#include "api/pool_fields.h"
#include "base/error.h"
#include "base/json_fwd.h"
#include "sched/pool_record.h"

namespace coppice::app {

// The entries of the file; their fields are still to be read, which takes the model. Errors: invalid_request, ready to
// be shown.
Result<std::vector<Json>> load_pool_file(const std::string& path);

// Begins with the first pool and returns; the engine thread does the rest. Each pool is logged when it is ready or has
// failed. One that fails does not keep back the others, unless the engine is ending.
// `kept`: those of before the last stop, made after the others; one that does not fit the context any more is left out.
// Errors: internal, if a sampler cannot be made; then none is begun.
Result<void> start_warm_pools(const api::Context& context, const std::vector<api::PoolFields>& pools,
                              const std::vector<sched::PoolRecord>& kept = {});

}  // namespace coppice::app
