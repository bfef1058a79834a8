// Makes chats that mean the same equal before they are rendered, so that what clients change between two turns of one
// conversation does not cost its prefix. Shared by all dialects, as all of them become a Chat Completions body. Pure
// functions, idempotent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/cache_marks.h"
#include "base/json_fwd.h"

namespace coppice::api {

// Changes the messages and tools of a Chat Completions `body`:
// - in system messages, lines that begin with "x-anthropic-" go, with their newlines: clients say there which of their
//   agents is asking, and what is said changes. A part, and a message, of which nothing is left goes too.
// - content that is a list of text parts becomes one string, the parts separated by newlines;
// - "cache_control" and "prompt_cache_breakpoint" go: the marks wander through the messages. Those that say for how
// long
//   are returned, in order, at most the last eight.
// What has a wrong form stays as it is, for the reader that reports it.
std::vector<CacheMark> normalise_chat(Json& body);

// The first of the above for one text.
std::string without_attribution(std::string text);

// The second; nothing when `parts` is no list, or not of text parts alone.
std::optional<std::string> joined_text(const Json& parts);

}  // namespace coppice::api
