// Random traffic on the tiers over a disk that fails at random, with restarts, kills, small budgets and every limit: no
// wrong byte, no broken invariant, no budget exceeded, and once the disk works again everything can be written.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tier/tiers_test_support.h"

namespace coppice::tier {
namespace {

const BlockId kSimRoot = root_of("model", "");

struct Simulation {
  Simulation(std::uint64_t seed, const std::string& dir) : random(seed), world(dir), home(dir) {
    world.options.host_bytes_max = pick(200, 6000);
    checkpoints = pick(0, 1) == 1;
    world.options.disk->bytes_max = pick(8000, 60000);
    world.options.disk->segment_bytes = pick(1500, 6000);
    world.options.disk->queue_bytes_max = pick(500, 5000);
    world.options.disk->bytes_per_hour_max = pick(0, 2) == 0 ? 0 : pick(2000, 50000);
    world.files->torn_bytes = pick(0, 400);
    world.open();
    world.files->before = [this](FaultyFiles::Call, const std::string&) -> Result<void> {
      if (faults_percent > 0 && pick(0, 99) < faults_percent) return disk_error("failed at random");
      return {};
    };
  }

  std::uint64_t pick(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  }
  Tokens some_prompt() {
    Tokens prompt;
    for (std::uint64_t n = pick(1, 24); n > 0; --n) prompt.push_back(static_cast<Token>(pick(0, 9) == 0 ? 1 : 0));
    return prompt;
  }

  void put_some() {
    const bool durable = pick(0, 1) == 1;
    const Tokens prompt = some_prompt();
    const std::size_t n_bytes = pick(0, 400);
    auto chain =
        checkpoints ? checkpoint_chain_of(kSimRoot, prompt, 4, n_bytes) : chain_of(kSimRoot, prompt, 4, n_bytes);
    if (pick(0, 1) == 0) {
      CellsForTest& sequence = sequences[pick(0, sequences.size() - 1)];
      sequence.shrink(*world.tiers, 0);
      sequence.grow(*world.tiers, chain);
    }
    const auto room = pick(0, 2) == 0 ? Tiers::Room::as_is : Tiers::Room::make;
    for (std::size_t i = pick(0, 3) == 0 ? pick(0, chain.size() - 1) : 0; i < chain.size(); ++i) {
      if (!world.tiers->put(std::move(chain[i]), durable, room)) break;
    }
    if (checkpoints && pick(0, 3) == 0) world.tiers->thin_checkpoints(kSimRoot, prompt);
  }
  Found find_some() {
    return world.tiers->find(kSimRoot, some_prompt(), checkpoints ? BlockKind::checkpoint : BlockKind::cells);
  }
  void lease_some() {
    const Found found = find_some();
    leases.push_back(world.tiers->lease(found.blocks));
    world.tiers->prefetch(leases.back());
    if (leases.size() > 3) leases.erase(leases.begin());
  }
  void read_leased() {
    for (const Lease& lease : leases) {
      for (const Lease::Held& held : lease.blocks()) {
        const Payload payload = world.tiers->payload(held.id);
        if (payload == nullptr) {
          ASSERT_NE(world.tiers->ready(lease), Ready::yes);
        } else {
          ASSERT_EQ(*payload, *state_of(held.id, payload->size()));
        }
      }
    }
  }
  void restart(bool killed) {
    leases.clear();
    for (CellsForTest& sequence : sequences) sequence.forget();
    faults_percent = 0;  // a server does not start on a disk that fails
    if (killed) {        // the copy is what is there at this moment
      const std::string copy = home + "-" + std::to_string(++n_kills);
      std::filesystem::copy(world.options.disk->dir, copy);
      if (pick(0, 1) == 0) world.files->cut_power(world.options.disk->dir, copy);
      world.tiers.reset();
      std::filesystem::remove_all(world.options.disk->dir);
      world.options.disk->dir = copy;
    } else {
      world.tiers.reset();
    }
    world.open();
  }
  void step() {
    world.clock.advance(std::chrono::seconds(pick(0, 200)));
    switch (pick(0, 12)) {
      case 12: {
        CellsForTest& sequence = sequences[pick(0, sequences.size() - 1)];
        sequence.shrink(*world.tiers, pick(0, sequence.size()));
        break;
      }
      case 0:
      case 1:
      case 2:
      case 3: put_some(); break;
      case 4: lease_some(); break;
      case 5: leases.clear(); break;
      case 6:
      case 7: world.tiers->poll(); break;
      case 8: (void)world.flush(); break;
      case 9: faults_percent = pick(0, 2) == 0 ? pick(0, 60) : 0; break;
      case 10:
        if (const Found found = find_some(); !found.blocks.empty() && pick(0, 5) == 0) {
          world.tiers->quarantine(found.blocks.back());
        }
        break;
      default:
        if (pick(0, 5) == 0) restart(pick(0, 1) == 0);
    }
    world.tiers->check_invariants();
    read_leased();
    const Stats stats = world.tiers->stats();
    ASSERT_LE(stats.host.bytes, world.options.host_bytes_max);
    ASSERT_LE(stats.disk.bytes, world.options.disk->bytes_max);
  }

  std::mt19937_64 random;
  World world;
  std::string home;
  std::uint64_t faults_percent = 0;
  bool checkpoints = false;  // chains end in one
  int n_kills = 0;
  std::vector<Lease> leases;
  std::array<CellsForTest, 3> sequences;
};

TEST(FaultSimulation, B20_NothingGoesWrongOnADiskThatFails) {
  const char* given = std::getenv("COPPICE_SIM_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  const int n_worlds = given != nullptr ? 1 : 30;
  for (int i = 0; i < n_worlds; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("COPPICE_SIM_SEED=" + std::to_string(seed));
    const TempFolder folder;
    Simulation simulation(seed, folder.sub("cache"));
    for (int n = 0; n < 300 && !testing::Test::HasFatalFailure(); ++n) simulation.step();
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    // The disk works again, and hours go by.
    simulation.leases.clear();
    for (CellsForTest& sequence : simulation.sequences) sequence.shrink(*simulation.world.tiers, 0);
    simulation.faults_percent = 0;
    for (int hour = 0; hour < 100 && simulation.world.tiers->stats().disk_state.unwritten > 0; ++hour) {
      simulation.world.clock.advance(std::chrono::hours(1));
      (void)simulation.world.flush();
    }
    EXPECT_EQ(simulation.world.flush().failed, 0U);
    EXPECT_FALSE(simulation.world.tiers->stats().disk_state.degraded);
  }
}

}  // namespace
}  // namespace coppice::tier
