// Reads a request's JSON fields strictly. A missing or null field takes its default, a field of a wrong type or out of
// range is an error that names it, unknown fields are ignored. The first error is kept, so that callers read all fields
// and ask once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::api {

// What names, ids and other words of a request may take, in bytes.
inline constexpr std::size_t kWordBytesMax = 256;
// No limit of its own for text: that of the body comes first.
inline constexpr std::size_t kTextBytesMax = std::size_t{1} << 30U;

// The error of one field: "'<param>' <what>", as in "'messages[2].role' must be a string".
std::unexpected<Error> wrong_field(const std::string& param, std::string_view what);

class FieldReader {
 public:
  // REQUIRES: `object` is a JSON object and outlives the reader. `prefix` comes before names in errors
  // ("stream_options.").
  explicit FieldReader(const Json& object, std::string prefix = "") : object_(object), prefix_(std::move(prefix)) {}

  // The field, or nullptr when it is missing or null.
  const Json* find(const char* name) const;

  bool boolean(const char* name, bool fallback);
  std::string string(const char* name, std::size_t bytes_max);
  // A whole number within [min, max]; 3.0 counts as whole.
  std::optional<std::int64_t> integer(const char* name, std::int64_t min, std::int64_t max);
  // The first of several names that is there; all are checked.
  std::optional<std::int64_t> integer(std::initializer_list<const char*> names, std::int64_t min, std::int64_t max);
  // A number within [min, max].
  std::optional<double> number(const char* name, double min, double max);
  // A string or an array of strings.
  std::vector<std::string> strings(const char* name, std::size_t count_max, std::size_t bytes_max);

  void fail(const char* name, std::string_view what);  // "'name' what"
  const std::optional<Error>& error() const { return error_; }

 private:
  const Json& object_;
  std::string prefix_;
  std::optional<Error> error_;
};

// The whole number in a JSON value, if it is one and fits.
std::optional<std::int64_t> whole_number(const Json& value);

}  // namespace coppice::api
