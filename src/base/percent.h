// Percent-encoding, as URLs have it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coppice {

// "%41" -> "A". Nothing when a '%' is not followed by two hexadecimal digits.
std::optional<std::string> decode_percent(std::string_view text);

}  // namespace coppice
