// Reads a request's query string like fields.h reads its body: a missing parameter takes its default, a wrong one is an
// error that names it, unknown ones are ignored. The first error is kept, and of two parameters of a name the first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace coppice::api {

class QueryReader {
 public:
  // REQUIRES: `query` outlives the reader. It is raw, without '?'.
  explicit QueryReader(std::string_view query) : query_(query) {}

  std::string string(const char* name, std::size_t bytes_max);
  std::int64_t integer(const char* name, std::int64_t min, std::int64_t max, std::int64_t fallback);
  bool flag(const char* name);  // true for every value but "" and "0"

  const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<std::string> find(std::string_view name);  // decoded
  void fail(std::string_view name, std::string_view what);

  std::string_view query_;
  std::optional<Error> error_;
};

}  // namespace coppice::api
