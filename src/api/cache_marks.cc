#include "api/cache_marks.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/json.h"

namespace coppice::api {
namespace {

constexpr const char* kControl = "cache_control";
constexpr const char* kBreakpoint = "prompt_cache_breakpoint";
constexpr std::int64_t kTtlMaxS = 86'400;

const Json* object_in(const Json& object, const char* field) {
  const auto found = object.is_object() ? object.find(field) : object.end();
  return object.is_object() && found != object.end() && found->is_object() ? &*found : nullptr;
}

std::optional<Duration> ttl_in(const Json* mark) {
  if (mark == nullptr) return std::nullopt;
  const auto ttl = mark->find("ttl");
  return ttl == mark->end() ? std::nullopt : read_mark_ttl(*ttl);
}

std::int64_t seconds_of(char unit) {
  switch (unit) {
    case 's': return 1;
    case 'm': return 60;
    case 'h': return 3600;
    case 'd': return 86'400;
    default: return 0;
  }
}

std::optional<Duration> duration_of(std::int64_t count, std::int64_t unit_s) {
  if (count < 1 || unit_s < 1) return std::nullopt;
  return std::chrono::seconds(count > kTtlMaxS / unit_s ? kTtlMaxS : count * unit_s);
}

// The ttl of the marks on one object alone.
std::optional<Duration> own_ttl(const Json& marked, std::optional<Duration> breakpoint_ttl) {
  std::optional<Duration> longest = ttl_in(object_in(marked, kControl));
  if (!marked.is_object()) return longest;
  const auto breakpoint = marked.find(kBreakpoint);
  if (breakpoint == marked.end() || breakpoint->is_null() || *breakpoint == false) return longest;
  const auto its = ttl_in(object_in(marked, kBreakpoint));
  return std::max(longest, its ? its : breakpoint_ttl);
}

}  // namespace

std::optional<Duration> read_mark_ttl(const Json& ttl) {
  if (ttl.is_number_unsigned() && ttl.get<std::uint64_t>() > std::uint64_t{kTtlMaxS}) return duration_of(kTtlMaxS, 1);
  if (ttl.is_number_integer()) return duration_of(ttl.get<std::int64_t>(), 1);
  if (!ttl.is_string()) return std::nullopt;
  const auto& text = ttl.get_ref<const std::string&>();
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc{} || end - at != 1) return std::nullopt;
  return duration_of(count, seconds_of(*at));
}

std::optional<Duration> marked_ttl(const Json& marked, std::optional<Duration> breakpoint_ttl) {
  if (!marked.is_object()) return std::nullopt;
  std::optional<Duration> longest = own_ttl(marked, breakpoint_ttl);
  for (const char* inner : {"content", "function"}) {
    const auto found = marked.find(inner);
    if (found == marked.end()) continue;
    if (found->is_object()) longest = std::max(longest, own_ttl(*found, breakpoint_ttl));
    if (!found->is_array()) continue;
    for (const Json& part : *found) longest = std::max(longest, own_ttl(part, breakpoint_ttl));
  }
  return longest;
}

std::optional<Duration> breakpoint_ttl_of(const Json& body) { return ttl_in(object_in(body, "prompt_cache_options")); }

std::optional<Duration> whole_prompt_ttl(const Json& body) {
  std::optional<Duration> longest = ttl_in(object_in(body, kControl));
  // In its mode "implicit", the default, every prompt's end is a breakpoint.
  const Json* options = object_in(body, "prompt_cache_options");
  if (options != nullptr && options->value("mode", Json()) != "explicit") longest = std::max(longest, ttl_in(options));
  if (const auto retention = body.find("prompt_cache_retention"); retention != body.end()) {
    longest = std::max(longest, read_mark_ttl(*retention));  // "24h"; "in_memory" is none
  }
  return longest;
}

void carry_mark(const Json& from, Json& to) {
  for (const char* name : {kControl, kBreakpoint}) {
    if (!from.is_object() || !from.contains(name)) continue;
    // A breakpoint's time may stand elsewhere in the request.
    if (name == kBreakpoint || ttl_in(object_in(from, name))) to[name] = from[name];
  }
}

}  // namespace coppice::api
