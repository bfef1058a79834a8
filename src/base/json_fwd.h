#pragma once

#include <nlohmann/json_fwd.hpp>

namespace coppice {
using Json = nlohmann::ordered_json;
}
