// http://HOST[:PORT][/BASE], the address of a server.
#pragma once

#include <string>
#include <string_view>

#include "result.h"

namespace coppice::bench {

struct Url {
  std::string host, port = "80";
  std::string base;  // before every path; empty, or begins with a slash and ends without one
};

// An error for anything but plain http. A trailing "/v1" is taken off, as all paths here begin with it.
Result<Url> parse_url(std::string_view text);

}  // namespace coppice::bench
