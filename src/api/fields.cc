#include "api/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/json_find.h"

namespace coppice::api {

std::optional<std::int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto n = value.get<std::uint64_t>();
    if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(n);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) {
    constexpr double kExactMax = 9007199254740992.0;  // 2^53: beyond, doubles skip whole numbers
    const double x = value.get<double>();
    if (std::isfinite(x) && std::abs(x) <= kExactMax && std::trunc(x) == x) return static_cast<std::int64_t>(x);
  }
  return std::nullopt;
}

std::unexpected<Error> wrong_field(const std::string& param, std::string_view what) {
  return invalid(fmt::format("'{}' {}", param, what), param);
}

const Json* FieldReader::find(const char* name) const { return find_field(object_, name); }

void FieldReader::fail(const char* name, std::string_view what) {
  if (error_) return;
  const std::string full = prefix_ + name;
  error_ = Error{ErrorKind::invalid_request, "'" + full + "' " + std::string(what), full};
}

bool FieldReader::boolean(const char* name, bool fallback) {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    fail(name, "must be true or false");
    return fallback;
  }
  return value->get<bool>();
}

std::string FieldReader::string(const char* name, std::size_t bytes_max) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_string()) {
    fail(name, "must be a string");
    return {};
  }
  if (value->get_ref<const std::string&>().size() > bytes_max) {
    fail(name, "is longer than " + std::to_string(bytes_max) + " bytes");
    return {};
  }
  return value->get<std::string>();
}

std::optional<std::int64_t> FieldReader::integer(const char* name, std::int64_t min, std::int64_t max) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto n = whole_number(*value);
  if (!n || *n < min || *n > max) {
    fail(name, "must be a whole number from " + std::to_string(min) + " to " + std::to_string(max));
    return std::nullopt;
  }
  return n;
}

std::optional<std::int64_t> FieldReader::integer(std::initializer_list<const char*> names, std::int64_t min,
                                                 std::int64_t max) {
  std::optional<std::int64_t> found;
  for (const char* name : names) {
    auto value = integer(name, min, max);
    if (!found) found = value;
  }
  return found;
}

std::optional<double> FieldReader::number(const char* name, double min, double max) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= min && number <= max)) {
    fail(name, fmt::format("must be a number from {} to {}", min, max));
    return std::nullopt;
  }
  return number;
}

std::vector<std::string> FieldReader::strings(const char* name, std::size_t count_max, std::size_t bytes_max) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {string(name, bytes_max)};
  if (!value->is_array()) {
    fail(name, "must be a string or an array of strings");
    return {};
  }
  if (value->size() > count_max) {
    fail(name, "has more than " + std::to_string(count_max) + " entries");
    return {};
  }
  std::vector<std::string> out;
  for (const Json& item : *value) {
    if (!item.is_string()) {
      fail(name, "must be a string or an array of strings");
    } else if (item.get_ref<const std::string&>().size() > bytes_max) {
      fail(name, "has an entry longer than " + std::to_string(bytes_max) + " bytes");
    } else {
      out.push_back(item.get<std::string>());
    }
  }
  return out;
}

}  // namespace coppice::api
