// What the host tier takes and gives: conversations that take turns on a server whose cells hold one of them (spec B18,
// B20). The memory of the process is compared with that of a server without tiers after the same traffic.
#include <atomic>
#include <cstdio>
#include <thread>

#include "support.h"

namespace coppice::http_test {
namespace {

constexpr TokenPos kLength = 3500, kNew = 20, kAnswer = 8;
constexpr std::size_t kRounds = 3;

// What a server was seen to do while conversations took turns.
struct Seen {
  std::vector<std::vector<int>> computed;  // by round and conversation
  double host_bytes_max = 0;               // of the metric, looked at again and again
  double rss = 0, peak = 0;                // bytes, after it all
  Json cache;

  int of_round(std::size_t round) const {
    int sum = 0;
    for (const int n : computed[round]) sum += n;
    return sum;
  }
};

class TiersBudget : public ServerTest {
 protected:
  // Cells for one conversation and the beginning of another. 32-bit keys and values make each token's KV large for the
  // time that it takes to compute.
  void serve_one(double ram_bytes) {
    serve({"-m", random_model("qwen3"), "-c", "4096", "-np", "1", "-ctk", "f32", "-ctv", "f32", "--cache-ram",
           std::to_string(static_cast<std::uint64_t>(ram_bytes))});
  }

  Json ask(const Tokens& prompt) const {
    Json body = greedy(prompt, kAnswer);
    body["ignore_eos"] = true;
    return client().ask("/completion", body);
  }

  double bytes_per_conversation() {
    serve_one(1U << 30U);
    if (HasFatalFailure()) return 0;
    ask(random_tokens(1, kLength));
    constexpr int kBlocks = (kLength + kAnswer + 255) / 256;
    EXPECT_TRUE(eventually([&] { return client().get("/v1/cache").json()["host"]["blocks"] == kBlocks; }));
    return metric(kHostBytes);
  }

  // The conversations' turns, one after the other; each turn goes on from the answer before.
  Seen rotate(int conversations) {
    Seen seen;
    std::atomic<bool> over = false;
    std::thread watch([&] {
      const Client other(server().port());
      while (!over) {
        seen.host_bytes_max = std::max(seen.host_bytes_max, metric(kHostBytes));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // as many looks as do not slow the server
      }
    });
    std::vector<Tokens> held(static_cast<std::size_t>(conversations));
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      std::vector<int>& computed = seen.computed.emplace_back();
      for (std::uint64_t i = 0; i < held.size(); ++i) {
        const Tokens prompt =
            round == 0 ? random_tokens(i, kLength) : joined(held[i], random_tokens(100 + 10 * round + i, kNew));
        const Json answer = ask(prompt);
        computed.push_back(answer.at("coppice").at("computed").get<int>());
        held[i] = held_after(prompt, answer);
      }
    }
    over = true;
    watch.join();
    seen.rss = static_cast<double>(server().program().memory_bytes("VmRSS"));
    seen.peak = static_cast<double>(server().program().memory_bytes("VmHWM"));
    seen.cache = client().get("/v1/cache").json();
    std::printf("conversations=%d computed=%d,%d,%d host_MiB_max=%.1f rss_MiB=%.1f peak_MiB=%.1f cache=%s\n",
                conversations, seen.of_round(0), seen.of_round(1), seen.of_round(2), seen.host_bytes_max / (1 << 20),
                seen.rss / (1 << 20), seen.peak / (1 << 20), seen.cache.dump().c_str());
    return seen;
  }

  static void expect_within(const Seen& seen, const Seen& without_tiers, double budget) {
    EXPECT_LE(seen.host_bytes_max, budget);
    const double buffers = 1 << 20;  // one kept for the next block, one on its way
    EXPECT_LE(seen.rss, without_tiers.rss + 1.1 * budget + buffers);
    EXPECT_LE(seen.peak, without_tiers.peak + 1.1 * budget + buffers);
  }

  static constexpr const char* kHostBytes = "coppice_tier_bytes{tier=\"host\"}";
};

TEST_F(TiersBudget, B20_WithRoomForAllNothingIsComputedTwice) {
  const double budget = 3.3 * bytes_per_conversation();
  ASSERT_GT(budget, 3.3 * kLength * 1024) << "too little KV for a statement about memory";
  ASSERT_NO_FATAL_FAILURE(serve_one(0));
  const Seen without = rotate(3);
  ASSERT_NO_FATAL_FAILURE(serve_one(budget));
  const Seen with = rotate(3);
  for (std::size_t round = 1; round < kRounds; ++round) {
    for (const int computed : with.computed[round]) EXPECT_EQ(computed, kNew) << "round " << round;
    EXPECT_GT(without.of_round(round), 2 * kLength);
  }
  expect_within(with, without, budget);

  // The worst of all blocks is no better than their average.
  const Json& stalls = with.cache.at("stalls_ms");
  const auto mean_ms = [&](const std::string& name) {
    return 1000 * metric("coppice_tier_" + name + "_seconds_sum") / metric("coppice_tier_" + name + "_seconds_count");
  };
  EXPECT_GE(stalls.at("save_worst").get<double>(), mean_ms("save"));
  EXPECT_GE(stalls.at("restore_worst").get<double>(), mean_ms("restore"));
  EXPECT_GT(mean_ms("restore"), 0);
}

// Four take turns in the room of 3.4: 2.2 in host memory, 1.2 in the cells. What is lost is about what does not fit,
// and not every conversation just before its turn.
TEST_F(TiersBudget, B20_MoreConversationsThanRoomLoseWhatDoesNotFit) {
  const double budget = 2.2 * bytes_per_conversation();
  ASSERT_NO_FATAL_FAILURE(serve_one(0));
  const Seen without = rotate(4);
  ASSERT_NO_FATAL_FAILURE(serve_one(budget));
  const Seen with = rotate(4);
  for (std::size_t round = 1; round < kRounds; ++round) {
    EXPECT_GT(with.of_round(round), 4 * kNew) << "one of them must have been lost in part";
    EXPECT_LE(with.of_round(round), kLength + kLength / 5);
    EXPECT_GT(without.of_round(round), 4 * kLength);
  }
  EXPECT_GT(with.cache.at("host").at("evictions").get<int>(), 0);
  expect_within(with, without, budget);
}

// What the cells hold need not be in host memory: 2.2 there and 1.2 in the cells are three, with a bit to spare.
TEST_F(TiersBudget, B20_RoomForTwoAndABitBesideTheCellsServesThree) {
  const double budget = 2.2 * bytes_per_conversation();
  ASSERT_NO_FATAL_FAILURE(serve_one(0));
  const Seen without = rotate(3);
  ASSERT_NO_FATAL_FAILURE(serve_one(budget));
  const Seen with = rotate(3);
  for (std::size_t round = 1; round < kRounds; ++round) {
    for (const int computed : with.computed[round]) EXPECT_EQ(computed, kNew) << "round " << round;
  }
  EXPECT_EQ(with.cache.at("host").at("evictions"), 0);
  expect_within(with, without, budget);
}

}  // namespace
}  // namespace coppice::http_test
