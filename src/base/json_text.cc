#include "base/json_text.h"

#include "base/json.h"

namespace coppice {

std::string to_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace coppice
