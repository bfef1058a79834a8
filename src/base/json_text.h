// JSON as text that is always valid UTF-8, whatever bytes a client or a model put into its strings.
#pragma once

#include <string>

#include "base/json_fwd.h"

namespace coppice {

// Compact; bytes that are no UTF-8 become U+FFFD (dump() alone would throw), numbers that JSON cannot hold become null.
// REQUIRES: nesting that a recursion survives: a body was parsed with a limit on it.
std::string to_text(const Json& value);

}  // namespace coppice
