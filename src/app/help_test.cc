#include "app/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "app/own_flags.h"

namespace coppice::app {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Help, EveryFlagOfOursIsThere) {
  const std::string help = serve_help();
  for (const OwnFlag& flag : own_flags()) {
    for (std::string_view name : flag.names) EXPECT_THAT(help, HasSubstr(std::string(name)));
    EXPECT_THAT(help, HasSubstr(std::string(flag.env)));
  }
}

TEST(Help, OursComesFirstAndPointsToLlamas) {
  const std::string help = serve_help();
  EXPECT_LT(help.find("Type first"), help.find("--help-llama"));
  EXPECT_THAT(help, HasSubstr("coppice serve -m"));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
}

TEST(Help, LlamasListHoldsWhatWorksAndNothingElse) {
  const std::string help = llama_help();
  for (const char* name : {"--ctx-size", "--n-gpu-layers", "--cache-type-k", "--temp", "--chat-template-file",
                           "--no-mmap", "LLAMA_ARG_CTX_SIZE"}) {
    EXPECT_THAT(help, HasSubstr(name));
  }
  for (const char* name : {"--context-shift", "--mmproj", "--slot-save-path", "--spec-draft-model", "--list-devices"}) {
    EXPECT_THAT(help, Not(HasSubstr(std::string("\n  ") + name))) << name;
  }
}

TEST(Help, VersionNamesBoth) {
  EXPECT_THAT(version_text(), HasSubstr(COPPICE_VERSION));
  EXPECT_THAT(version_text(), HasSubstr(COPPICE_LLAMA_VERSION));
}

}  // namespace
}  // namespace coppice::app
