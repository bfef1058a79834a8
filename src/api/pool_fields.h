// What a named pool is made of, as POST /v1/pools and `coppice serve --pool FILE` say it (spec A12).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/services.h"
#include "base/error.h"
#include "base/json_fwd.h"
#include "sched/request.h"

namespace coppice::api {

struct PoolFields {
  sched::PoolSpec spec;
  std::string cache_salt;
  Tokens tokens;  // not empty, and few enough for the context
};

// Reads name, ttl, cache_salt, and the prefix: one of messages (with whatever a chat body may have), prompt, tokens.
// Errors: invalid_request naming the field; context_overflow.
Result<PoolFields> read_pool(const Json& body, const Services& services);

// A file with one pool or a list of them, as JSON objects whose fields are still to be read. Errors: invalid_request.
Result<std::vector<Json>> parse_pool_file(std::string_view text);

// read_pool() of each. Errors: as there, with the place before it ("pools[2]: ..."); two of the same name and salt.
Result<std::vector<PoolFields>> read_pools(const std::vector<Json>& pools, const Services& services);

}  // namespace coppice::api
