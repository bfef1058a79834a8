// The command line of `coppice cache`. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace coppice::app {

enum class CacheAction : std::uint8_t { help, ls, stat, verify, prune, export_file, import_file };

struct CacheOptions {
  CacheAction action = CacheAction::help;
  std::string help;  // what to print for it
  std::string dir, file;
  bool json = false, repair = false, mix = false;
  std::uint64_t limit = 20;
  std::optional<std::uint64_t> older_than_s, keep_bytes;
  std::vector<std::string> chains;
};

// Errors: invalid_request; `param`: the command whose --help explains it.
Result<CacheOptions> parse_cache(const std::vector<std::string>& args);  // without `cache`

}  // namespace coppice::app
