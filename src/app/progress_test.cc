#include "app/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace coppice::app {
namespace {

using testing::HasSubstr;

TEST(Progress, SaysNothingOfWhatIsQuick) {
  ManualClock clock;
  std::ostringstream out;
  Progress progress(out, clock, true);
  for (int i = 0; i <= 100; ++i) progress.show(static_cast<float>(i) / 100);
  progress.finish();
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, ALineEveryTenthWithoutATerminal) {
  ManualClock clock;
  std::ostringstream out;
  Progress progress(out, clock, false);
  clock.advance(std::chrono::seconds(2));
  for (int i = 25; i <= 45; ++i) progress.show((static_cast<float>(i) + 0.5F) / 100);
  progress.finish();
  EXPECT_EQ(out.str(), "loading 20%\nloading 30%\nloading 40%\n");
}

TEST(Progress, ABarThatGrowsAndGoesAway) {
  ManualClock clock;
  std::ostringstream out;
  Progress progress(out, clock, true);
  clock.advance(std::chrono::seconds(2));
  progress.show(0.505F);
  EXPECT_THAT(out.str(), HasSubstr("\rloading [####################                    ]  50%"));
  progress.show(0.25F);  // never goes back
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("25%")));
  progress.finish();
  progress.show(1);
  EXPECT_THAT(out.str(), testing::EndsWith(" \r"));
}

}  // namespace
}  // namespace coppice::app
