// JSON in and out, hardened for a network: parsing refuses what could hurt, writing never fails.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json_fwd.h"
#include "base/json_text.h"

namespace coppice::api {

inline constexpr int kJsonDepthMax = 256;

// Parses a request body. Errors: invalid_request when it is not valid JSON (with line and column), not UTF-8, no
// object, nested deeper than kJsonDepthMax (later passes recurse), or has so many keys in one object that the ordered
// map's linear lookups would take seconds.
Result<Json> parse_body(std::string_view body);

// The same for any value, not only an object; errors speak of "the " + `what`.
Result<Json> parse_json(std::string_view text, const std::string& what);

// `value` as one server-sent event, "data: ...\n\n".
std::string to_sse(const Json& value);
// The same with a line "event: ..." before it, which names the value's "type". REQUIRES: it has one.
std::string to_event(const Json& value);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
inline constexpr std::string_view kSsePing = ": ping\n\n";

bool is_utf8(std::string_view text);

// Where an empty text means that there is none.
inline Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace coppice::api
