// A disk whose calls do not return must not keep the process alive (spec B20).
#include <gtest/gtest.h>

#include <thread>

#include "tier/tiers_test_support.h"

namespace coppice::tier {
namespace {

const BlockId kHungRoot = root_of("model", "");

class HungDisk : public testing::Test {
 protected:
  HungDisk() {
    world_.options.disk->own_thread = true;
    world_.options.disk->end_wait = std::chrono::milliseconds(20);
    world_.options.disk->on_hung = [this] { ++hung_; };
    world_.files->before = [this](FaultyFiles::Call call, const std::string&) -> Result<void> {
      if (call == hangs_in_) {
        inside_.release();
        released_.acquire();
      }
      return {};
    };
  }
  // The thread that was left behind goes on, and ends with all that it uses.
  ~HungDisk() override {
    released_.release(1000);
    world_.tiers = nullptr;
    world_.options.disk->files = nullptr;
    while (world_.files.use_count() > 1) std::this_thread::yield();
  }

  TempFolder dir_;
  std::atomic<FaultyFiles::Call> hangs_in_ = FaultyFiles::Call::truncate;
  std::counting_semaphore<> inside_{0}, released_{0};
  int hung_ = 0;
  World world_{dir_.path()};
};

TEST_F(HungDisk, B20_TheEndWaitsNoLongerThanItMay) {
  world_.open();
  hangs_in_ = FaultyFiles::Call::sync;
  world_.put_all(chain_of(kHungRoot, numbers(1, 8), 4, 100));
  inside_.acquire();
  world_.tiers = nullptr;
  EXPECT_EQ(hung_, 1);
}

TEST_F(HungDisk, B20_SealingTheLastSegmentMayHangToo) {
  world_.open();
  world_.put_all(chain_of(kHungRoot, numbers(1, 8), 4, 100));
  EXPECT_EQ(world_.flush().failed, 0U);
  hangs_in_ = FaultyFiles::Call::rename;
  world_.tiers = nullptr;
  EXPECT_EQ(hung_, 1);
}

TEST_F(HungDisk, ADiskThatWorksIsWaitedFor) {
  world_.options.disk->end_wait = std::chrono::minutes(10);
  world_.open();
  hangs_in_ = FaultyFiles::Call::sync;
  const auto chain = chain_of(kHungRoot, numbers(1, 8), 4, 100);
  world_.put_all(chain);
  inside_.acquire();
  std::thread later([&] { released_.release(1000); });
  world_.tiers = nullptr;
  later.join();
  EXPECT_EQ(hung_, 0);
  world_.options.disk->own_thread = false;
  EXPECT_EQ(world_.open().stats().disk.blocks, chain.size());
}

}  // namespace
}  // namespace coppice::tier
