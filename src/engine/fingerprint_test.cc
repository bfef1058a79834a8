#include "engine/fingerprint.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace coppice::engine {
namespace {

class SampledDigest : public testing::Test {
 protected:
  SampledDigest() {
    std::string name = (std::filesystem::temp_directory_path() / "coppice-digest-XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
  }
  ~SampledDigest() override { std::filesystem::remove_all(dir_); }
  std::string file(const std::string& name, const std::string& bytes) {
    const std::string path = dir_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string dir_;
};

TEST_F(SampledDigest, B20_DependsOnContentAndSizeNotOnTheName) {
  const std::string bytes(9'000'000, 'x');
  const auto one = sampled_digest(file("one", bytes));
  EXPECT_EQ(*one, *sampled_digest(file("two", bytes)));
  EXPECT_NE(*one, *sampled_digest(file("longer", bytes + "x")));
  for (const std::size_t at : {std::size_t{0}, std::size_t{4'000'000}, bytes.size() - 1}) {
    std::string other = bytes;
    other[at] = 'y';
    EXPECT_NE(*one, *sampled_digest(file("other", other))) << at;
  }
}

TEST_F(SampledDigest, SmallAndMissingFiles) {
  EXPECT_NE(*sampled_digest(file("empty", "")), *sampled_digest(file("small", "a")));
  EXPECT_FALSE(sampled_digest(dir_ + "/missing").has_value());
}

}  // namespace
}  // namespace coppice::engine
