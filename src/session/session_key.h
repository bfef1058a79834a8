// Which session does a request belong to? The key is the client's word: it chooses where to look for KV first and never
// proves anything (spec A4). Pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::session {

struct SessionKey {
  std::string key;   // "" : none; the request then neither reads nor writes the session map (spec A3)
  std::string rule;  // which rule found it: "body.session_id", "header.x-session-id"; "" with an empty key
};

// Gives a header's value by its lower-case name; empty when it was not sent.
using HeaderLookup = std::function<std::string_view(std::string_view name)>;

// Tries the rules in order of trust and takes the first that finds a non-empty key of at most `bytes_max` bytes.
// Errors: invalid_request for a body field that is no string or is too long. A header that is too long is passed over,
// as it may come from a proxy that the client knows nothing of. REQUIRES: `body` is an object.
Result<SessionKey> find_session_key(const Json& body, const HeaderLookup& header, std::size_t bytes_max);

}  // namespace coppice::session
