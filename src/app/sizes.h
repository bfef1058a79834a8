// Amounts as people write and read them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace coppice::app {

// "4194304", "512MiB", "8 GiB", "64M", "1.5g". One letter means the binary unit too, as memory is bought that way;
// "MB" and its like are powers of ten. Errors: invalid_request.
Result<std::uint64_t> parse_size(std::string_view text);

// A whole number within [min, max] and nothing after it. Errors: invalid_request.
Result<std::int64_t> parse_int(std::string_view text, std::int64_t min, std::int64_t max);

// "90s", "45m", "12h", "30d", "2w", in seconds. Errors: invalid_request.
Result<std::uint64_t> parse_age(std::string_view text);

std::string human_age(std::uint64_t age_s);     // "5 s", "45 min", "12 h", "30 d"
std::string human_bytes(std::uint64_t bytes);   // "1.8 MiB", "812 B"
std::string human_count(std::uint64_t count);   // "1.7M", "20.9B", "812"
std::string with_commas(std::uint64_t number);  // "131,072"

}  // namespace coppice::app
