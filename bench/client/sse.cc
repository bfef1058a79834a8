#include "client/sse.h"

#include <utility>

namespace coppice::bench {

std::optional<std::string_view> SseParser::take_line() {
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  const std::size_t end = rest.find_first_of("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t length = 1;
  if (rest[end] == '\r') {
    if (end + 1 == rest.size()) return std::nullopt;  // its line feed may still come
    if (rest[end + 1] == '\n') length = 2;
  }
  taken_ += end + length;
  return rest.substr(0, end);
}

std::optional<std::string> SseParser::next() {
  while (const std::optional<std::string_view> line = take_line()) {
    if (line->empty()) {
      if (!has_data_) continue;
      has_data_ = false;
      return std::exchange(data_, {});
    }
    if (!line->starts_with("data")) continue;
    std::string_view value = line->substr(4);
    if (!value.empty() && value.front() != ':') continue;  // another field, whose name only begins so
    if (!value.empty()) value.remove_prefix(1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
  buffer_.erase(0, taken_);
  taken_ = 0;
  return std::nullopt;
}

}  // namespace coppice::bench
