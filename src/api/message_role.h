// The role of a Chat Completions message, whatever a client wrote there. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_find.h"

namespace coppice::api {

// Empty when the message has none, or is no object.
inline std::string_view role_of(const Json& message) {
  const Json* role = find_field(message, "role");
  return role != nullptr && role->is_string() ? std::string_view(role->get_ref<const std::string&>())
                                              : std::string_view();
}

// "developer" is the newer name of "system".
inline bool is_system(const Json& message) {
  const std::string_view role = role_of(message);
  return role == "system" || role == "developer";
}

}  // namespace coppice::api
