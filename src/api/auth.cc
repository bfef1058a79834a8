#include "api/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace coppice::api {
namespace {

std::string_view presented_key(const HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view value = request.header("authorization");
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  if (value.size() > kScheme.size() &&
      std::equal(kScheme.begin(), kScheme.end(), value.begin(), [&](char b, char a) { return same(a, b); })) {
    value.remove_prefix(kScheme.size());
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    return value;
  }
  return request.header("x-api-key");
}

}  // namespace

Keyring::Keyring(const std::vector<std::string>& keys, std::string_view secret) {
  if (secret.size() >= secret_.size()) {
    std::copy_n(secret.begin(), secret_.size(), secret_.begin());
  } else if (RAND_bytes(secret_.data(), static_cast<int>(secret_.size())) != 1) {
    std::random_device device;  // also the kernel's generator; OpenSSL's failing is all but impossible
    for (auto& byte : secret_) byte = static_cast<unsigned char>(device());
  }
  for (const auto& key : keys) keys_.push_back(digest(key));
}

Keyring::Digest Keyring::digest(std::string_view text) const {
  Digest out{};
  unsigned length = 0;
  HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), &length);
  return out;
}

Result<std::string> Keyring::authorize(const HttpRequest& request) const {
  if (keys_.empty()) return std::string{};
  const std::string_view key = presented_key(request);
  const Digest wanted = digest(key);
  bool known = false;
  // All keys are compared, by digest, so that time tells neither which one nor how much of it matched.
  for (const Digest& candidate : keys_) {
    known |= CRYPTO_memcmp(candidate.data(), wanted.data(), wanted.size()) == 0;
  }
  if (key.empty()) {
    return fail(ErrorKind::unauthorized, "this server needs an API key: send 'Authorization: Bearer KEY'");
  }
  if (!known) return fail(ErrorKind::unauthorized, "the API key is not valid");
  return std::string(key);
}

NamespaceId Keyring::namespace_of(std::string_view key, std::string_view cache_salt) const {
  if (key.empty() && cache_salt.empty()) return NamespaceId{};
  // The length keeps ("ab", "c") and ("a", "bc") apart.
  const Digest hash = digest(std::to_string(key.size()) + ':' + std::string(key) + std::string(cache_salt));
  std::uint64_t value = 0;
  std::memcpy(&value, hash.data(), sizeof value);
  return NamespaceId{value == 0 ? 1 : value};
}

}  // namespace coppice::api
