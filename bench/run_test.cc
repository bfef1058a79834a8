#include "run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "peers/child.h"
#include "scenarios/tally.h"

namespace coppice::bench {
namespace {

using ::testing::ElementsAre;

TEST(Run, NamesAndCommandsAreTakenApart) {
  const auto named = parse_named("a=b=c d");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->name, "a");
  EXPECT_EQ(named->text, "b=c d");
  for (const char* bad : {"", "a", "=b", "a="}) EXPECT_FALSE(parse_named(bad)) << bad;
  EXPECT_THAT(expand_command("x  -p {port} --m={model}/{model}", {{"port", "80"}, {"model", "{port}"}}),
              ElementsAre("x", "-p", "80", "--m={port}/{port}"));
}

TEST(Run, WithoutServersIsAnError) {
  EXPECT_FALSE(run({.scenarios = {"turn2"}}));
  EXPECT_FALSE(run({.scenarios = {"nothing"}, .peers = {{"a", "http://127.0.0.1:1"}}}));
}

TEST(Scenarios, EachHasVariantsWithCellsAtEveryScale) {
  for (const std::string& name : scenario_names()) {
    for (const Scale scale : {Scale::quick, Scale::full, Scale::large}) {
      const auto scenario = make_scenario(name, {scale, COPPICE_BENCH_TRACES});
      ASSERT_TRUE(scenario) << scenario.error();
      EXPECT_EQ(scenario->name, name);
      EXPECT_FALSE(scenario->variants.empty());
      for (const Variant& v : scenario->variants) {
        EXPECT_FALSE(v.label.empty());
        EXPECT_EQ(v.needs.cells % 256, 0) << name << ": " << v.label;
        EXPECT_EQ(std::ranges::count(scenario->variants, v.label, &Variant::label), 1) << name << ": " << v.label;
      }
    }
  }
  EXPECT_FALSE(make_scenario("replay", {Scale::quick, "/no/such/folder"}));
}

TEST(Tally, SetsWhatWasComputedBesideTheOptimum) {
  const Vocabulary vocabulary{100, 5000, 7};
  Conversation c{"s", {}, 1};
  Tally tally;
  tally.learn(c.ask(vocabulary, 50, 4), vocabulary);
  c.hear(vocabulary, 4);
  Completion answer;
  answer.first_ms = 10, answer.total_ms = 40, answer.n_computed = 54, answer.n_answer = 4;
  tally.add(c.ask(vocabulary, 10, 4), answer, vocabulary);
  const Episode measures = tally.measures();
  const auto value = [&](std::string_view name) { return std::ranges::find(measures, name, &Measure::name)->value; };
  EXPECT_EQ(value("tokens_computed"), 54);
  EXPECT_EQ(value("tokens_optimum"), 11) << "the ten new ones, and the answer's last, which was never evaluated";
  EXPECT_EQ(value("first_ms_p50"), 10);
  EXPECT_DOUBLE_EQ(tally.decode_tokens_per_s(), 100);
}

}  // namespace
}  // namespace coppice::bench
