// The fixture of the tests that have a disk.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tier/record.h"
#include "tier/tiers_test_support.h"

namespace coppice::tier {

using FileCall = FaultyFiles::Call;

inline const BlockId kModel = root_of("model", "");
inline constexpr std::size_t kStateBytes = 100;

struct DiskTier : testing::Test, World {
  DiskTier() : World(folder_path()) {}
  static std::string folder_path() { return current().sub("cache"); }
  static TempFolder& current() {
    static std::unique_ptr<TempFolder> folder;
    static const testing::TestInfo* owner = nullptr;
    const testing::TestInfo* now = testing::UnitTest::GetInstance()->current_test_info();
    if (owner != now) folder = std::make_unique<TempFolder>();
    owner = now;
    return *folder;
  }
  std::string in_folder(const std::string& name) const { return options.disk->dir + "/" + name; }
  void restart() {
    tiers.reset();
    open();
  }
  std::vector<FileInfo> listing() const { return system_files()->list(options.disk->dir).value(); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const FileInfo& file : listing()) found.push_back(file.name);
    std::ranges::sort(found);
    return found;
  }
  std::string start_error() {
    auto opened = Tiers::open(options, clock, metrics);
    return opened ? "" : opened.error().message;
  }
};

}  // namespace coppice::tier
