// The folder of the disk tier: whose it is, and who has it now. A file marks it as ours with the format's version, and
// is locked while a server runs; the secret is made once. Everything in it is the user's alone (0700, 0600). Threading:
// start-up.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "tier/file_system.h"

namespace coppice::tier {

inline constexpr const char* kMarkName = "coppice-cache";
inline constexpr const char* kSecretName = "secret";
inline constexpr const char* kIndexName = "index.sqlite";

struct CacheFolder {
  std::unique_ptr<FileLock> lock;
  std::string secret;
};

// Makes the folder if it is not there. Errors as of Tiers::open.
Result<CacheFolder> take_folder(FileSystem& files, const std::string& dir);

// That it is a folder of this format. Changes nothing. Errors: as above, and not_found.
Result<void> check_folder(FileSystem& files, const std::string& dir);

std::string random_secret();  // 32 bytes

}  // namespace coppice::tier
