// API keys: who may ask, and whose KV it is.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "base/error.h"
#include "base/ids.h"

namespace coppice::api {

// Immutable after construction, safe from any thread.
class Keyring {
 public:
  // No keys: everybody may ask. `secret`: what namespaces are made with, so that those of the disk's blocks are found
  // again after a restart; empty: a new one.
  explicit Keyring(const std::vector<std::string>& keys, std::string_view secret = {});

  // The API key of the request ("Authorization: Bearer KEY" or "x-api-key: KEY"), or "" when none are configured:
  // clients then send whatever they like, and an unchecked word must not split their KV. Errors: unauthorized. The
  // comparison takes the same time whatever the key.
  Result<std::string> authorize(const HttpRequest& request) const;

  // The isolation domain of a key from authorize() and the request's cache_salt; both empty: the default domain, 0.
  // A keyed hash with a secret, so that no client can look for two salts that meet.
  NamespaceId namespace_of(std::string_view key, std::string_view cache_salt) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  Digest digest(std::string_view text) const;

  Digest secret_{};
  std::vector<Digest> keys_;
};

}  // namespace coppice::api
