// Server-sent events out of bytes that come in any pieces (WHATWG HTML, section 9.2.6; only `data` is of use here).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coppice::bench {

class SseParser {
 public:
  void feed(std::string_view bytes) { buffer_ += bytes; }

  // The data of the next complete event, its lines joined with newlines; nothing until more bytes come.
  std::optional<std::string> next();

 private:
  // The next complete line without its end, if there is one.
  std::optional<std::string_view> take_line();

  std::string buffer_;
  std::size_t taken_ = 0;  // bytes at the buffer's beginning that are done with
  std::string data_;
  bool has_data_ = false;
};

}  // namespace coppice::bench
