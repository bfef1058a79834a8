#include "engine/fingerprint.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <vector>

#include "base/hex.h"
#include "common.h"

namespace coppice::engine {
namespace {

constexpr std::uint64_t kHeadBytes = std::uint64_t{4} << 20, kPieceBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kPieces = 64;

}  // namespace

Result<std::string> sampled_digest(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return fail(ErrorKind::internal, "cannot read " + path);
  const auto size = static_cast<std::uint64_t>(file.tellg());
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr);
  EVP_DigestUpdate(hash.get(), &size, sizeof size);
  std::vector<char> bytes;
  const auto add = [&](std::uint64_t begin, std::uint64_t count) {
    bytes.resize(std::min(count, size - begin));
    file.seekg(static_cast<std::streamoff>(begin));
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EVP_DigestUpdate(hash.get(), bytes.data(), bytes.size());
    return !!file;
  };
  bool read = add(0, kHeadBytes);
  for (std::uint64_t i = 1; i <= kPieces && read && size > kHeadBytes; ++i) {
    // Evenly spread over the rest; the last one ends with the file.
    const std::uint64_t end = kHeadBytes + (size - kHeadBytes) / kPieces * i + (i == kPieces ? size % kPieces : 0);
    const std::uint64_t begin = std::min(end, size) - std::min(kPieceBytes, std::min(end, size));
    read = add(begin, kPieceBytes);
  }
  if (!read) return fail(ErrorKind::internal, "cannot read " + path);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(hash.get(), digest, &length);
  return to_hex(std::span(digest, length));
}

Result<std::string> kv_fingerprint(const LlamaModel& model) {
  const common_params& p = model.params();
  auto file = sampled_digest(model.summary().path);
  if (!file) return std::unexpected(file.error());
  std::string out = fmt::format(
      "llama.cpp={} model={} k={} v={} rope={}/{}/{} yarn={}/{}/{}/{}/{} fa={}", COPPICE_LLAMA_VERSION, *file,
      static_cast<int>(p.cache_type_k), static_cast<int>(p.cache_type_v), static_cast<int>(p.rope_scaling_type),
      p.rope_freq_base, p.rope_freq_scale, p.yarn_ext_factor, p.yarn_attn_factor, p.yarn_beta_fast, p.yarn_beta_slow,
      p.yarn_orig_ctx, static_cast<int>(p.flash_attn_type));
  for (const auto& adapter : p.lora_adapters) {
    auto digest = sampled_digest(adapter.path);
    if (!digest) return std::unexpected(digest.error());
    out += fmt::format(" lora={}*{}", *digest, adapter.scale);
  }
  for (const auto& vector : p.control_vectors) {
    auto digest = sampled_digest(vector.fname);
    if (!digest) return std::unexpected(digest.error());
    out += fmt::format(" control={}*{}[{}-{}]", *digest, vector.strength, p.control_vector_layer_start,
                       p.control_vector_layer_end);
  }
  return out;
}

}  // namespace coppice::engine
