// `coppice cache`: what people do with a folder of the disk tier (docs/tiers.md). Threading: one thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tier/file_system.h"

namespace coppice::app {

struct CacheConsole {
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  // err is one: progress is shown
  const Clock& clock;
  std::uint64_t now_us = 0;  // since 1970
  std::shared_ptr<tier::FileSystem> files;
};

// `args` without `cache`. Exit status: 0 fine, 1 something is wrong, 2 wrong usage.
int run_cache(const std::vector<std::string>& args, const CacheConsole& console);

}  // namespace coppice::app
