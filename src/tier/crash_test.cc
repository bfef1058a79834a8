// kill -9 and power cuts, at every call that the disk tier makes (spec B20): whatever is left of the folder, the next
// server starts on it, serves no wrong byte, and has all that a flush had promised.
#include <gtest/gtest.h>

#include <set>

#include "tier/tiers_test_support.h"

namespace coppice::tier {
namespace {

const BlockId kCrashRoot = root_of("model", "");

struct Snapshot {
  std::string dir;
  std::size_t n_promised = 0;  // prompts whose flush had returned
  bool dropping = false;       // blocks were being given up for room, so a promise may end
};

Tokens prompt_number(std::size_t i) {
  Tokens prompt = numbers(1, 8);  // all of them share two blocks
  for (Token t : numbers(static_cast<Token>(1000 * (i + 1)), 9)) prompt.push_back(t);
  return prompt;
}

// What the server does; `promised` grows with each flush that returns.
void live(World& world, std::size_t& n_promised, bool& dropping) {
  world.open();
  for (std::size_t i = 0; i < 6; ++i) {
    world.put_all(chain_of(kCrashRoot, prompt_number(i), 4, 300));
    EXPECT_TRUE(world.tiers->put_record("session", std::to_string(i), "x"));
    EXPECT_EQ(world.flush().failed, 0U);
    n_promised = i + 1;
  }
  dropping = true;
  for (std::size_t i = 6; i < 30; ++i) {  // more than the disk takes: eviction, dead segments, compaction
    world.clock.advance(std::chrono::seconds(10));
    world.put_all(chain_of(kCrashRoot, prompt_number(i), 4, 300));
    world.flush();
  }
  world.tiers.reset();
}

void examine(const Snapshot& snapshot) {
  World world(snapshot.dir);
  world.options.disk->bytes_max = 20000;
  Tiers& tiers = world.open();
  tiers.check_invariants();
  for (std::size_t i = 0; i < 30; ++i) {
    const Tokens prompt = prompt_number(i);
    const auto known = static_cast<TokenPos>(4 * world.restore(kCrashRoot, prompt));  // throws at a wrong byte
    if (i < snapshot.n_promised && !snapshot.dropping) {
      ASSERT_GE(known, 17) << "prompt " << i << " of " << snapshot.n_promised;
      ASSERT_TRUE(tiers.records("session").contains(std::to_string(i)));
    }
  }
  if (!snapshot.dropping) {
    ASSERT_EQ(tiers.stats().quarantined, 0U);  // what the index says was complete
  }
  world.put_all(chain_of(kCrashRoot, prompt_number(99), 4, 300));  // and it goes on
  ASSERT_EQ(world.flush().failed, 0U);
  ASSERT_EQ(world.restore(kCrashRoot, prompt_number(99)), 5U);
}

void crash_everywhere(bool power_cut) {
  const TempFolder folder;
  World world(folder.sub("cache"));
  world.options.disk->bytes_max = 20000;
  std::vector<Snapshot> snapshots;
  std::size_t n_promised = 0;
  bool dropping = false;
  world.files->before = [&](FaultyFiles::Call call, const std::string&) -> Result<void> {
    if (call == FaultyFiles::Call::read) return {};
    if (dropping && snapshots.size() % 3 != 0) {  // there are many, and alike
      snapshots.push_back({});
      return {};
    }
    Snapshot snapshot{folder.sub(std::to_string(snapshots.size())), n_promised, dropping};
    std::filesystem::copy(world.options.disk->dir, snapshot.dir);
    if (power_cut) world.files->cut_power(world.options.disk->dir, snapshot.dir);
    snapshots.push_back(std::move(snapshot));
    return {};
  };
  live(world, n_promised, dropping);
  EXPECT_GT(snapshots.size(), 100U);
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    if (snapshots[i].dir.empty()) continue;
    SCOPED_TRACE(i);
    ASSERT_NO_THROW(examine(snapshots[i]));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Crash, B20_KilledAtAnyCallTheNextServerHasAllThatWasPromised) { crash_everywhere(false); }

TEST(Crash, B20_WithoutPowerAtAnyCallTheNextServerHasAllThatWasPromised) { crash_everywhere(true); }

// The bytes behind what the index knows are what a killed server was writing.
TEST(Crash, ATornEndOfASegmentIsCutOff) {
  const TempFolder folder;
  World world(folder.sub("cache"));
  world.open();
  world.put_all(chain_of(kCrashRoot, prompt_number(0), 4, 300));
  world.flush();
  const std::string killed = folder.sub("killed");
  std::filesystem::copy(world.options.disk->dir, killed);
  const std::string segment = killed + "/00000001.open";
  const auto whole = std::filesystem::file_size(segment);
  std::filesystem::resize_file(segment, whole + 123);
  World next(killed);
  next.open();
  EXPECT_EQ(std::filesystem::file_size(killed + "/00000001.seg"), whole);
  EXPECT_EQ(next.tiers->stats().disk_state.segment_bytes, whole);
  EXPECT_EQ(next.restore(kCrashRoot, prompt_number(0)), 5U);
}

}  // namespace
}  // namespace coppice::tier
