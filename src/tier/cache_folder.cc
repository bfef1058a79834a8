#include "tier/cache_folder.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <random>
#include <span>
#include <string_view>

#include "obs/log.h"
#include "tier/record.h"

namespace coppice::tier {
namespace {

constexpr std::string_view kMarkText = "Coppice KV cache, format ";
constexpr std::size_t kSecretBytes = 32;
constexpr const char* kLockName = "lock";
constexpr const char* kNewSuffix = ".new";

std::string mark_text() { return fmt::format("{}{}\n", kMarkText, kFormatVersion); }

// The whole of a small file.
Result<std::string> read_small(FileSystem& files, const std::string& path, std::size_t bytes_max) {
  std::string text(bytes_max, '\0');
  const auto n = files.read(path, 0, std::as_writable_bytes(std::span(text)));
  if (!n) return std::unexpected(n.error());
  text.resize(*n);
  return text;
}

// The file is there whole or not at all, whatever happens meanwhile.
Result<void> write_small(FileSystem& files, const std::string& dir, const std::string& name, std::string_view text) {
  const std::string path = dir + "/" + name, temporary = path + kNewSuffix;
  (void)files.remove(temporary);  // of a server that was killed here
  const auto file = files.create(temporary);
  if (!file) return std::unexpected(file.error());
  auto done = (*file)->append(std::as_bytes(std::span(text)));
  if (done) done = (*file)->sync();
  if (done) done = files.rename(temporary, path);
  if (done) done = files.sync_folder(dir);
  return done;
}

bool has(const std::vector<FileInfo>& files, std::string_view name) {
  return std::ranges::any_of(files, [&](const FileInfo& file) { return file.name == name; });
}

// Before anything is made in it: a folder with files in it that we have not marked is not ours to write into. Whoever
// dies while making a new one leaves no more than the lock, the secret and a half of either.
Result<void> check_mark(FileSystem& files, const std::string& dir) {
  const auto found = files.list(dir);
  if (!found) return std::unexpected(found.error());
  if (!has(*found, kMarkName)) {
    const bool empty = std::ranges::all_of(*found, [](const FileInfo& file) {
      return file.name == kLockName || file.name == kSecretName || file.name.ends_with(kNewSuffix);
    });
    if (empty) return {};
    return invalid(fmt::format("{} holds other files and no cache of Coppice's", dir));
  }
  const auto mark = read_small(files, dir + "/" + kMarkName, 256);
  if (!mark) return std::unexpected(mark.error());
  if (*mark == mark_text()) return {};
  if (!mark->starts_with(kMarkText)) return invalid(fmt::format("{} is no cache folder of Coppice's", dir));
  return invalid(fmt::format("the cache folder {} says '{}', and this version knows format {}: use another folder", dir,
                             mark->substr(0, mark->find('\n')), kFormatVersion));
}

Result<std::string> secret_of(FileSystem& files, const std::string& dir, bool is_new) {
  if (!is_new) {
    auto secret = read_small(files, dir + "/" + kSecretName, kSecretBytes + 1);
    if (secret && secret->size() == kSecretBytes) return secret;
    obs::log_warn("cache secret made anew", "dir={} reason=\"{}\"", dir,
                  secret ? "it has the wrong length" : secret.error().message);
    (void)files.remove(dir + "/" + kSecretName);
  }
  std::string secret = random_secret();
  const auto written = write_small(files, dir, kSecretName, secret);
  if (!written) return std::unexpected(written.error());
  return secret;
}

}  // namespace

std::string random_secret() {
  std::string secret(kSecretBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()), static_cast<int>(secret.size())) != 1) {
    std::random_device device;  // also the kernel's generator; OpenSSL's failing is all but impossible
    for (char& byte : secret) byte = static_cast<char>(device());
  }
  return secret;
}

Result<void> check_folder(FileSystem& files, const std::string& dir) {
  const auto found = files.list(dir);
  if (!found) return fail(ErrorKind::not_found, found.error().message);
  if (!has(*found, kMarkName))
    return fail(ErrorKind::not_found, fmt::format("{} is no cache folder of Coppice's", dir));
  return check_mark(files, dir);
}

Result<CacheFolder> take_folder(FileSystem& files, const std::string& dir) {
  const auto unusable = [&](const Error& error) {
    if (error.kind == ErrorKind::invalid_request) return std::unexpected(error);
    return invalid(fmt::format("the cache folder {} cannot be used: {}", dir, error.message));
  };
  if (const auto made = files.make_folder(dir); !made) return unusable(made.error());
  if (const auto checked = check_mark(files, dir); !checked) return unusable(checked.error());
  CacheFolder folder;
  auto lock = files.lock(dir + "/" + kLockName);
  if (!lock && lock.error().code == "in_use") {
    return fail(ErrorKind::unavailable, fmt::format("another server uses the cache folder {}", dir));
  }
  if (!lock) return unusable(lock.error());
  folder.lock = std::move(*lock);
  const auto found = files.list(dir);
  if (!found) return unusable(found.error());
  auto secret = secret_of(files, dir, !has(*found, kSecretName));
  if (!secret) return unusable(secret.error());
  folder.secret = std::move(*secret);
  // Last, so that a marked folder has all that a server needs.
  if (!has(*found, kMarkName)) {
    if (const auto marked = write_small(files, dir, kMarkName, mark_text()); !marked) return unusable(marked.error());
  }
  return folder;
}

}  // namespace coppice::tier
