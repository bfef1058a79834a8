// One request that the router has found a handler for, as the handler sees it. Valid while the handler runs.
#pragma once

#include <string>
#include <string_view>

#include "api/context.h"
#include "api/http.h"
#include "api/query.h"
#include "base/error.h"

namespace coppice::api {

struct Call {
  const Context& context;
  const HttpRequest& http;
  std::string_view key;   // the API key, from Keyring::authorize
  std::string_view name;  // what the path has for {name}; empty for other routes

  const Services& services() const { return context.services; }
  NamespaceId ns(std::string_view cache_salt) const { return context.keyring.namespace_of(key, cache_salt); }

  // The namespace of a request without body: ?cache_salt= of the query string.
  Result<NamespaceId> query_ns() const {
    QueryReader in(http.query);
    const std::string salt = in.string("cache_salt", services().limits.cache_salt_bytes_max);
    if (in.error()) return std::unexpected(*in.error());
    return ns(salt);
  }
};

}  // namespace coppice::api
