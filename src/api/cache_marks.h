// Where a client marks its prompt as worth keeping, and for how long: Anthropic's "cache_control", OpenAI's
// "prompt_cache_breakpoint", "prompt_cache_options" and "prompt_cache_retention". Pure functions.
//
// Only marks that say how long count (their own "ttl", or that of prompt_cache_options for a breakpoint): everything
// computed is kept as long as there is room anyway, so a mark without a time asks for nothing more. A mark that cannot
// be read is ignored, as normalise_chat() takes them all out and no answer depends on them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/json_fwd.h"

namespace coppice::api {

struct CacheMark {
  std::ptrdiff_t message = 0;  // the last one that it covers; -1: the tools alone
  Duration ttl{0};
  friend bool operator==(const CacheMark&, const CacheMark&) = default;
};

// "5m", "1h", "30s", "24h", "2d", or a number of seconds; at most a day. Nothing for what is none of these.
std::optional<Duration> read_mark_ttl(const Json& ttl);

// The longest time that the marks on a message, its parts or a tool ask for; nothing without one.
// `breakpoint_ttl`: of a prompt_cache_breakpoint that has none of its own.
std::optional<Duration> marked_ttl(const Json& marked, std::optional<Duration> breakpoint_ttl);

// prompt_cache_options.ttl of the body.
std::optional<Duration> breakpoint_ttl_of(const Json& body);

// What the body's own fields ask for the whole prompt.
std::optional<Duration> whole_prompt_ttl(const Json& body);

// Copies the mark of `from`, a part or block of a dialect's content, to what it becomes, if it says how long.
void carry_mark(const Json& from, Json& to);

}  // namespace coppice::api
