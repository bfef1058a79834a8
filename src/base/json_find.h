#pragma once

#include <string_view>

#include "base/json_fwd.h"

namespace coppice {

// The member of `object` called `key`, or nullptr when it is missing, null, or `object` is no object: clients send null
// for what they leave out.
const Json* find_field(const Json& object, std::string_view key);

}  // namespace coppice
