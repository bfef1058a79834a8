#include "tier/block.h"

#include <openssl/evp.h>

#include <bit>
#include <cassert>
#include <cstdint>

#include "base/hex.h"

namespace coppice::tier {
namespace {

// The first byte hashed says of what, so that no root can be a block.
constexpr char kRootKind = 'r', kCellsKind = 'b', kCheckpointKind = 'c';

static_assert(std::endian::native == std::endian::little, "ids and records are defined as little-endian");

template <class T>
void put_bytes(std::string& to, const T* from, std::size_t n) {
  to.append(reinterpret_cast<const char*>(from), n * sizeof(T));
}

// Looking the algorithm up takes longer than hashing a small block, so it is done once.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const kFetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return kFetched;
}

BlockId sha256(std::string_view text) {
  BlockId id{};
  unsigned length = 0;
  [[maybe_unused]] const int ok = EVP_Digest(text.data(), text.size(), id.data(), &length, sha256_algorithm(), nullptr);
  assert(ok == 1 && length == id.size());  // SHA-256 in memory does not fail
  return id;
}

}  // namespace

BlockId root_of(std::string_view fingerprint, std::string_view name_space) {
  std::string text(1, kRootKind);
  const std::uint64_t n = fingerprint.size();  // keeps ("ab", "c") and ("a", "bc") apart
  put_bytes(text, &n, 1);
  text.append(fingerprint).append(name_space);
  return sha256(text);
}

BlockId id_of(const BlockId& parent, std::span<const Token> tokens, BlockKind kind) {
  const bool checkpoint = kind == BlockKind::checkpoint;
  std::string text(1, checkpoint ? kCheckpointKind : kCellsKind);
  text.reserve(1 + parent.size() + tokens.size_bytes());
  put_bytes(text, parent.data(), parent.size());
  put_bytes(text, tokens.data(), tokens.size());
  BlockId id = sha256(text);
  id[0] = static_cast<unsigned char>(checkpoint ? id[0] | 1U : id[0] & ~1U);
  return id;
}

bool names(const BlockId& id, const BlockId& parent, std::span<const Token> tokens) {
  return id == id_of(parent, tokens, kind_of(id));
}

std::string hex(const BlockId& id) { return to_hex(id); }

std::string short_hex(const BlockId& id) { return hex(id).substr(0, 16); }

}  // namespace coppice::tier
