#include "client/url.h"

#include <algorithm>

namespace coppice::bench {

Result<Url> parse_url(std::string_view text) {
  const std::string whole(text);
  constexpr std::string_view scheme = "http://";
  if (!text.starts_with(scheme)) return std::unexpected(whole + " is no http:// address");
  text.remove_prefix(scheme.size());
  Url url;
  const std::size_t slash = std::min(text.find('/'), text.size());
  std::string_view authority = text.substr(0, slash), base = text.substr(slash);
  while (base.ends_with('/')) base.remove_suffix(1);
  if (base.ends_with("/v1")) base.remove_suffix(3);
  url.base = base;
  const std::size_t bracket = authority.find(']');  // of an IPv6 address
  const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    url.port = authority.substr(colon + 1);
    authority = authority.substr(0, colon);
    const bool digits = std::ranges::all_of(url.port, [](char c) { return c >= '0' && c <= '9'; });
    if (url.port.empty() || !digits) return std::unexpected(whole + " has no port behind its colon");
  }
  if (bracket != std::string_view::npos) authority = authority.substr(1, bracket - 1);
  if (authority.empty()) return std::unexpected(whole + " names no host");
  url.host = authority;
  return url;
}

}  // namespace coppice::bench
