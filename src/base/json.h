// JSON values that keep the order of their keys, as prompts depend on it. Include base/json_fwd.h in headers.
#pragma once

#include <nlohmann/json.hpp>

#include "base/json_fwd.h"
