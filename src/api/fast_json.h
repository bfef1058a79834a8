// JSON text to values several times faster than the values' own library parses it, for the bodies that are big: whole
// conversations, and prompts of a hundred thousand token ids.
//
// Pure function. It knows no errors: whatever is wrong or unusual is left to the slow parser, which says what and
// where.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json_fwd.h"

namespace coppice::api {

struct FastJsonLimits {
  int depth_max = 0;                      // levels of arrays and objects
  std::uint64_t key_comparisons_max = 0;  // the n-th key of an object costs n
};

// The value that Json::parse() would give; nothing when that would throw, when a limit is exceeded, or when it cannot
// be told (a number that no 64 bits hold).
std::optional<Json> parse_fast(std::string_view text, const FastJsonLimits& limits);

}  // namespace coppice::api
