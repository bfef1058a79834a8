// What `coppice cache ls` and `stat` print: a folder's conversations and its sums. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "tier/cache_reader.h"

namespace coppice::app {

// Conversations, the one used last first; limit 0: all of them.
std::string chains_text(const tier::CacheReader& cache, std::uint64_t limit, std::uint64_t now_us);
Json chains_json(const tier::CacheReader& cache, std::uint64_t limit);

std::string sums_text(const tier::CacheReader& cache, std::uint64_t now_us);
Json sums_json(const tier::CacheReader& cache);

}  // namespace coppice::app
