// Which session does a request belong to? The key is the client's word: it chooses where to look for KV first and never
// proves anything (spec A4, B22). Pure functions; the rules are one table in session_key.cc.
//
// A key names a set of branches rather than one prefix: the same client asks for titles, compacts, and starts
// sub-agents under it. Sub-agents that say so get a key of their own, with the session that started them as parent.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::session {

struct SessionKey {
  std::string key;     // "" : none; the request then neither reads nor writes the session map (spec A3)
  std::string rule;    // which rule found it: "body.session_id", "header.thread-id", ...; "" with an empty key
  std::string parent;  // the session that this one branched from, where the client says so; else ""
};

// Gives a header's value by its lower-case name; empty when it was not sent.
using HeaderLookup = std::function<std::string_view(std::string_view name)>;
// Gives the session of a turn by an id that this server minted and the client sends back; empty when it is not known.
using MintedLookup = std::function<std::string(std::string_view id)>;

struct SessionSources {
  HeaderLookup header;
  MintedLookup minted;  // may be empty
  // false: only what names a session to us, body.session_id, counts; nothing is inferred.
  bool infer = true;
  std::size_t bytes_max = 256;
};

// Tries the rules in order of trust and takes the first that finds a non-empty key of at most `bytes_max` bytes.
// Errors: invalid_request for a session_id or parent_session_id that is no string or is too long. All else comes from
// clients or proxies that may know nothing of sessions: what is of no use is passed over. REQUIRES: `body` is an
// object.
Result<SessionKey> find_session_key(const Json& body, const SessionSources& sources);

// Names of all rules in order, for documentation and tests.
std::vector<std::string> session_rules();

}  // namespace coppice::session
