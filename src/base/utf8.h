// Where a byte string stops being whole UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace coppice {

// How many bytes at the end of `text` are the beginning of a character that more bytes could complete (0 to 3). Bytes
// that can never become valid count as complete: holding them back would hold them for ever.
std::size_t incomplete_utf8_tail(std::string_view text);

}  // namespace coppice
