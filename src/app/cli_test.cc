#include "app/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coppice::app {
namespace {

using testing::HasSubstr;

struct Outcome {
  int status = -1;
  std::string out, err;
};

Outcome run_captured(const std::vector<std::string>& args) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.status = run(args);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(Cli, HelpAndVersionGoToStdout) {
  for (const std::vector<std::string>& args : {std::vector<std::string>{},
                                               {"--help"},
                                               {"-h"},
                                               {"help"},
                                               {"--version"},
                                               {"serve", "--help"},
                                               {"serve", "-h"},
                                               {"serve", "--help-llama"},
                                               {"serve", "--version"},
                                               {"serve", "--list-devices"}}) {
    const Outcome outcome = run_captured(args);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_FALSE(outcome.out.empty());
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(Cli, WrongUsageIsStatusTwoAndSaysWhereHelpIs) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"server"}, "no command 'server'"},
      {{"-m", "x.gguf"}, "coppice serve -m"},
      {{"serve", "--nonsense"}, "--nonsense"},
      {{"serve", "--context-shift"}, "--context-shift: "},
      {{"serve", "--queue-limit", "x"}, "--queue-limit"},
      {{"serve", "-c", "x"}, "whole number"},
      {{"serve", "--host", "0.0.0.0"}, "--allow-no-key"},
  };
  for (const auto& [args, expected] : cases) {
    const Outcome outcome = run_captured(args);
    EXPECT_EQ(outcome.status, 2) << args.back();
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(expected));
    EXPECT_THAT(outcome.err, HasSubstr("--help"));
  }
}

TEST(Cli, AMissingModelIsStatusOne) {
  const Outcome outcome = run_captured({"serve", "--port", "0", "-m", "/nonexistent/model.gguf"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/model.gguf"));
}

}  // namespace
}  // namespace coppice::app
