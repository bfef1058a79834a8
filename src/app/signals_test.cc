#include "app/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace coppice::app {
namespace {

TEST(Signals, TheFirstIsAnEvent) {
  for (int number : {SIGINT, SIGTERM}) {
    Signals signals;
    EXPECT_FALSE(signals.interrupted());
    ASSERT_EQ(::kill(::getpid(), number), 0);
    EXPECT_EQ(signals.wait(), number);
    EXPECT_TRUE(signals.interrupted());
  }
}

TEST(Signals, WithoutOneItEndsQuietly) { Signals signals; }

TEST(Signals, ABrokenPipeIsNoReasonToDie) {
  Signals signals;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  ::close(ends[1]);
}

TEST(SignalsDeathTest, TheSecondEndsTheProcessAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Signals signals;
        ::kill(::getpid(), SIGTERM);
        signals.wait();
        ::kill(::getpid(), SIGINT);
        for (;;) ::pause();
      },
      testing::ExitedWithCode(130), "stopped at once");
}

}  // namespace
}  // namespace coppice::app
