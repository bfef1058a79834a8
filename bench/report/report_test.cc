// Records, their order for people, tables and pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/chart.h"
#include "report/digest.h"
#include "report/html.h"
#include "report/text.h"

namespace coppice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Record record(const std::string& server, int repeat, double ms, double tokens) {
  return {.scenario = "turn2",
          .question = "How <fast>?",
          .x_label = "",
          .variant = "1 session",
          .model = "5M",
          .server = server,
          .x = {},
          .repeat = repeat,
          .load = repeat + 1.0,
          .measures = {{"first_ms_p50", Unit::ms, ms}, {"tokens_computed", Unit::tokens, tokens}},
          .error = ""};
}

std::vector<Record> records() {
  std::vector<Record> all = {record("coppice", 0, 10, 100), record("other", 0, 20, 4000), record("coppice", 1, 12, 100),
                             record("other", 1, 36, 4000)};
  Record floor = record("floor", 0, 8, 0);
  floor.measures.pop_back();
  all.push_back(floor);
  return all;
}

TEST(Record, ComesBackFromItsLine) {
  Record r = record("a", 3, 1.5, 7);
  r.x = 4;
  r.error = "broke";
  Results results;
  ASSERT_TRUE(read_lines(to_line(RunFacts{"now", "abc", "run", "a machine", 2}) + "\n\n" + to_line(r) + "\n", results));
  ASSERT_EQ(results.records.size(), 1U);
  EXPECT_EQ(to_line(results.records[0]), to_line(r));
  ASSERT_EQ(results.runs.size(), 1U);
  EXPECT_EQ(results.runs[0].commit, "abc");
}

TEST(Record, ForeignLinesAreNamed) {
  Results results;
  for (const char* bad : {"{}", "nonsense", R"({"kind": "episode"})"}) {
    const Status s = read_lines(to_line(record("a", 0, 1, 1)) + "\n" + bad, results);
    ASSERT_FALSE(s) << bad;
    EXPECT_THAT(s.error(), HasSubstr("line 2"));
  }
}

TEST(Digest, PairsRepeatsOfServers) {
  const Digest digest = digest_of(records());
  EXPECT_THAT(digest.servers, ElementsAre("coppice", "other"));
  EXPECT_EQ(digest.load_min, 1);
  EXPECT_EQ(digest.load_max, 2);
  ASSERT_EQ(digest.sections.size(), 1U);
  const Row* row = digest.sections[0].variants[0].find("first_ms_p50");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->of("coppice")->median, 11);
  EXPECT_EQ(row->ratio("other", "coppice")->min, 2);
  EXPECT_EQ(row->ratio("other", "coppice")->max, 3);
  EXPECT_EQ(row->ratio("coppice", "floor")->median, 1.25);
  EXPECT_FALSE(digest.sections[0].variants[0].find("tokens_computed")->ratio("coppice", "floor"));
}

TEST(Digest, AnEpisodeThatFailedShiftsNoPairs) {
  std::vector<Record> all = records();
  all[1].measures.clear(), all[1].error = "HTTP 500";
  const Row row = *digest_of(all).sections[0].variants[0].find("first_ms_p50");
  EXPECT_EQ(row.ratio("other", "coppice")->min, 3) << "the second repeat's, though the other server has one value only";
  all[3].run = 1;
  EXPECT_FALSE(digest_of(all).sections[0].variants[0].find("first_ms_p50")->ratio("other", "coppice"))
      << "another run's";
}

TEST(Text, NumbersKeepThreeDigitsAndCountsAll) {
  EXPECT_EQ(number_text(1234567, Unit::tokens), "1,234,567");
  EXPECT_EQ(number_text(-1234, Unit::cells), "-1,234");
  EXPECT_EQ(number_text(123, Unit::tokens), "123");
  EXPECT_EQ(number_text(12345.6, Unit::ms), "12,346");
  EXPECT_EQ(number_text(12.345, Unit::ms), "12.3");
  EXPECT_EQ(number_text(0.5, Unit::ms), "0.50");
  EXPECT_EQ(summary_text({1, 2, 3, 3}, Unit::ms), "2.00 (1.00-3.00)");
  EXPECT_EQ(summary_text({2, 2, 2, 3}, Unit::ms), "2.00");
}

TEST(Text, TablesNameServersRatiosAndTheFloor) {
  const Digest digest = digest_of(records());
  const auto table = table_of(digest.sections[0], digest.servers);
  EXPECT_THAT(table[0], ElementsAre("variant", "measure", "unit", "coppice", "other", "floor", "other / coppice",
                                    "coppice / floor", "other / floor"));
  EXPECT_THAT(table[1], ElementsAre("1 session", "first_ms_p50", "ms", "11.0 (10.0-12.0)", "28.0 (20.0-36.0)", "8.00",
                                    "2.50 (2.00-3.00)", "1.25", "2.50"));
  EXPECT_THAT(table[2], ElementsAre("", "tokens_computed", "tokens", "100", "4,000", "", "40.0", "", ""));
  EXPECT_THAT(markdown_table({{"a", "b"}, {"1", ""}}), "| a | b |\n|---|---|\n| 1 |  |\n");
  EXPECT_EQ(plain_table({{"a", "b"}, {"long", "2"}}), "a     b\nlong  2\n");
}

TEST(Html, HoldsAllOfItselfAndEscapesWhatItShows) {
  Results results;
  results.records = records();
  results.runs = {{"now", "abc", "run --spawn 'a<b'", "a machine", 2}};
  Record failed = record("other", 2, 0, 0);
  failed.measures.clear(), failed.error = "HTTP 500: <boom>";
  results.records.push_back(failed);
  const std::string page = html_report(results);
  EXPECT_THAT(page, HasSubstr("How &lt;fast&gt;?"));
  EXPECT_THAT(page, HasSubstr("a&lt;b"));
  EXPECT_THAT(page, HasSubstr("HTTP 500: &lt;boom&gt;"));
  EXPECT_THAT(page, HasSubstr("<svg"));
  for (const char* outside : {"http:", "https:", "src=", "@import", "<boom>"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(markdown_report(results), HasSubstr("| 1 session | first_ms_p50 | ms |"));
}

TEST(Chart, NumbersBecomeLinesAndNamesBars) {
  Chart chart{"t", "ms", "x", {{"one", 1.0}, {"ten", 10.0}}, {{"a", {Summary{1, 2, 3, 3}, Summary{4, 4, 4, 3}}}}};
  EXPECT_THAT(svg_of(chart), HasSubstr("<path"));
  EXPECT_THAT(svg_of(chart), HasSubstr("class=\"whisker\""));
  chart.points[1].x.reset();
  EXPECT_THAT(svg_of(chart), Not(HasSubstr("<path")));
  chart.series[0].values = {std::nullopt, std::nullopt};
  EXPECT_THAT(svg_of(chart), HasSubstr("</svg>")) << "nothing measured is no crash";
}

}  // namespace
}  // namespace coppice::bench
