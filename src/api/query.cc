#include "api/query.h"

#include <algorithm>
#include <charconv>

#include "base/percent.h"

namespace coppice::api {

void QueryReader::fail(std::string_view name, std::string_view what) {
  if (!error_) {
    error_ = Error{ErrorKind::invalid_request, "'" + std::string(name) + "' in the query string " + std::string(what),
                   std::string(name)};
  }
}

std::optional<std::string> QueryReader::find(std::string_view name) {
  for (std::string_view rest = query_; !rest.empty();) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) != name) continue;
    std::string value(pair.substr(std::min(equals + 1, pair.size())));
    std::ranges::replace(value, '+', ' ');
    auto decoded = decode_percent(value);
    if (!decoded) fail(name, "has a '%' that two hexadecimal digits do not follow");
    return decoded;
  }
  return std::nullopt;
}

std::string QueryReader::string(const char* name, std::size_t bytes_max) {
  auto value = find(name);
  if (!value) return {};
  if (value->size() > bytes_max) {
    fail(name, "is longer than " + std::to_string(bytes_max) + " bytes");
    return {};
  }
  return *std::move(value);
}

std::int64_t QueryReader::integer(const char* name, std::int64_t min, std::int64_t max, std::int64_t fallback) {
  const auto value = find(name);
  if (!value) return fallback;
  std::int64_t number = 0;
  const char* end = value->data() + value->size();
  const auto [stopped, problem] = std::from_chars(value->data(), end, number);
  if (problem == std::errc{} && stopped == end && number >= min && number <= max) return number;
  fail(name, "must be a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return fallback;
}

bool QueryReader::flag(const char* name) {
  const auto value = find(name);
  return value && !value->empty() && *value != "0";
}

}  // namespace coppice::api
