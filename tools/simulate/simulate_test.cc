// The simulator: its costs, its workload, and counts that are the same each time.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "simulate/policies.h"

namespace coppice::simulate {
namespace {

std::vector<CostPoint> made_points() {
  std::vector<CostPoint> points;
  for (const int n : {1, 2, 4, 8, 16, 64, 256}) {
    for (const int c : {100, 1000, 5000, 20000}) {
      points.push_back({Work::step, n, c, 100 + 50.0 * n + 0.01 * c + 0.002 * n * c});
    }
    points.push_back({Work::save, n, 0, 20 + 2.0 * n});
    points.push_back({Work::restore, n, 0, 10 + 3.0 * n});
  }
  return points;
}

class Simulated : public testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    costs = *Costs::fit(made_points());
    auto all = read_traces(COPPICE_BENCH_TRACES);
    ASSERT_TRUE(all.has_value()) << all.error();
    traces = *std::move(all);
  }
  Workload workload(int sessions) const {
    return {traces, {.sessions = sessions, .tokens_per_block = 1, .requests_max = 6}};
  }
  // Room for all on the device, or for one request a slot there, and for a share of all in host memory.
  Outcome run(const std::string& policy, const Workload& w, bool device_holds_all, double host_share) const {
    const Workload::Best best = w.best();
    const Room room{.cells = device_holds_all ? static_cast<int>(best.held) + 4 * best.longest : 4 * (best.longest + 1),
                    .slots = 4,
                    .host_tokens = static_cast<std::int64_t>(host_share * static_cast<double>(best.held))};
    return replay(w, *make_policy(policy, room, costs));
  }
  std::vector<bench::Trace> traces;
  Costs costs;
};

TEST(Costs, AreFoundAgainFromPointsThatTheyMade) {
  const auto costs = Costs::fit(made_points());
  ASSERT_TRUE(costs.has_value());
  EXPECT_EQ(costs->step(4, 2000), Duration(100 + 200 + 20 + 16));
  EXPECT_EQ(costs->step(512, 10000), Duration(100 + 25600 + 100 + 10240));
  EXPECT_EQ(costs->save(1000), Duration(2020));
  EXPECT_EQ(costs->restore(1000), Duration(3010));
  const auto held = held_back_error(made_points());
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(held->prompts.n, 4U);
  EXPECT_LT(held->prompts.worst, 1e-6);
  EXPECT_FALSE(Costs::fit(std::vector<CostPoint>{{Work::step, 1, 1, 1}}).has_value());
}

TEST(Costs, AreReadAsTheyWereWritten) {
  const std::string text = "{\"model\":\"m\"}\n" + to_line({Work::restore, 16, 32, 1.5}) + "\n";
  const auto read = parse_cost_points(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->about, "{\"model\":\"m\"}");
  ASSERT_EQ(read->points.size(), 1U);
  EXPECT_EQ(to_line(read->points[0]), to_line({Work::restore, 16, 32, 1.5}));
  EXPECT_FALSE(parse_cost_points("{}\n{\"work\":\"rest\",\"tokens\":1,\"cells\":1,\"us\":1}").has_value());
  EXPECT_FALSE(parse_cost_points("{}\n{\"work\":\"step\",\"tokens\":0,\"cells\":1,\"us\":1}").has_value());
}

TEST_F(Simulated, TheCommittedCostsCanBeFitted) {
  const auto points = read_cost_points(COPPICE_SIMULATE_COSTS);
  ASSERT_TRUE(points.has_value()) << points.error();
  EXPECT_TRUE(Costs::fit(points->points).has_value());
}

TEST_F(Simulated, APromptGoesOnWithTheAnswerBeforeIt) {
  const Workload w({rotation_trace(3, 10)}, {.sessions = 2, .tokens_per_block = 4});
  Turn before = w.turn(0, w.agent(0), 0);
  const Turn after = w.turn(0, w.agent(0), 1);
  EXPECT_EQ(before.prompt.size(), 40U);
  before.prompt.insert(before.prompt.end(), before.answer.begin(), before.answer.end());
  EXPECT_EQ(Tokens(after.prompt.begin(), after.prompt.begin() + 44), before.prompt);
  EXPECT_NE(w.turn(1, w.agent(1), 0).prompt, w.turn(0, w.agent(0), 0).prompt);
  const Workload::Best best = w.best();
  EXPECT_EQ(best.prompt_tokens, 2 * (40 + 48 + 56));
  // 40 new ones, then twice 8 of which 3 were evaluated as an answer's.
  EXPECT_EQ(best.computed, 2 * (40 + 5 + 5));
}

TEST_F(Simulated, WithRoomForAllNothingIsComputedTwice) {
  for (const int sessions : {1, 4, 16, 64}) {
    const Workload w = workload(sessions);
    const Workload::Best best = w.best();
    const Outcome o = run("coppice", w, true, 0);
    EXPECT_EQ(o.requests, best.requests) << sessions;
    EXPECT_EQ(o.first_ms.size(), static_cast<std::size_t>(best.requests));
    EXPECT_EQ(o.prompt_tokens, best.prompt_tokens);
    EXPECT_EQ(o.computed, best.computed) << sessions;
  }
}

TEST_F(Simulated, TheSameRunGivesTheSameResult) {
  const Workload w = workload(16);
  for (const Named& policy : policy_names()) {
    const Outcome a = run(policy.name, w, false, 0.2), b = run(policy.name, w, false, 0.2);
    EXPECT_EQ(a.computed, b.computed) << policy.name;
    EXPECT_EQ(a.first_ms, b.first_ms) << policy.name;
    EXPECT_EQ(a.makespan_s, b.makespan_s) << policy.name;
    EXPECT_GE(a.computed, w.best().computed) << policy.name;
  }
  EXPECT_FALSE(make_policy("nothing", {}, costs).has_value());
}

TEST_F(Simulated, LlamaServerFindsASessionAgainInItsSlotOrItsCache) {
  const Workload w({rotation_trace(5, 20)}, {.sessions = 6, .tokens_per_block = 4, .start_window_s = 30});
  const Workload::Best best = w.best();
  EXPECT_EQ(run("llama-server", w, false, 1).computed, best.computed);
  EXPECT_EQ(run("llama-server-np", w, false, 1).computed, best.computed);
  EXPECT_EQ(run("llama-server", w, false, 0).prompt_tokens, best.prompt_tokens);
  EXPECT_GT(run("llama-server", w, false, 0).computed, best.computed);
}

}  // namespace
}  // namespace coppice::simulate
