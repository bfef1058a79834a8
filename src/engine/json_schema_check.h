// Refuses JSON schemas that llama-common's schema converter (v0.4.0) would not survive, before they reach it: it
// recurses without a limit, follows circular "$ref"s inside "allOf" for ever, and its work can grow exponentially.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::engine {

// Whether `value` has at most `depth_max` levels of arrays and objects. Safe for any depth.
bool json_depth_within(const Json& value, int depth_max);

// `param` names the request field at fault. Thread-safe. For every schema from a client: response_format, json_schema,
// the parameters of a tool.
Result<void> check_json_schema(const Json& schema, const std::string& param);

}  // namespace coppice::engine
