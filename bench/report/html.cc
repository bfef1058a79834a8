#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/chart.h"
#include "report/digest.h"
#include "report/text.h"

namespace coppice::bench {
namespace {

// What is worth a picture: how long, and how much was computed.
constexpr std::array<std::string_view, 5> kPlotted{"first_ms_p50", "makespan_ms", "tokens_per_s", "decode_tokens_per_s",
                                                   "tokens_computed"};

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Coppice: measured</title>
<style>
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1320px; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0; }
th, td { padding: 2px 10px; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:nth-child(-n+3), td:nth-child(-n+3) { text-align: left; }
.plots { display: flex; flex-wrap: wrap; gap: 1em; }
.wide { overflow-x: auto; }
svg { width: 640px; max-width: 100%; height: auto; }
svg text { fill: currentColor; font-size: 12px; }
svg .title { font-size: 14px; font-weight: 600; }
svg .grid { stroke: var(--line); }
svg .whisker { stroke: currentColor; stroke-width: 1.5; }
code { font-size: 12px; }
</style></head><body>
)";

constexpr std::string_view kHow =
    "Each server got the same prompts, one server after the other within each repeat. Values are median "
    "(minimum-maximum) "
    "of the repeats; ratios are those of values measured right after one another. The floor is llama.cpp alone, "
    "without a "
    "server, for the same new tokens behind the same resident prefix. Token counts are the servers' own; the optimum "
    "is what a "
    "cache that forgets nothing would have to compute.";

Chart chart_of(const Section& section, std::string_view measure, const std::vector<std::string>& servers) {
  Chart chart{std::string(measure), "", section.x_label, {}, {}, false};
  std::vector<std::string> names = servers;
  names.emplace_back(kFloorName);
  if (measure == "tokens_computed") names.back() = "optimum";
  for (const std::string& server : names) chart.series.push_back({server, {}});
  for (const VariantDigest& variant : section.variants) {
    const Row* row = variant.find(measure);
    if (row == nullptr) continue;
    const Row* optimum = variant.find("tokens_optimum");
    chart.unit = name(row->unit);
    chart.more_is_better = more_is_better(row->unit);
    chart.points.push_back({variant.label, variant.x});
    for (ChartSeries& s : chart.series) {
      const bool is_optimum = s.name == "optimum" && optimum != nullptr && !servers.empty();
      s.values.push_back(is_optimum ? optimum->of(servers.front()) : row->of(s.name));
    }
  }
  std::erase_if(chart.series, [](const ChartSeries& s) {
    return std::ranges::none_of(s.values, [](const auto& v) { return v.has_value(); });
  });
  return chart;
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"wide\"><table>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    out += "<tr>";
    for (const std::string& cell : rows[r])
      out += fmt::format("<{0}>{1}</{0}>", r == 0 ? "th" : "td", escape_html(cell));
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string title_of(const Section& s) { return fmt::format("{}, model of {}", s.scenario, s.model); }

std::string machine_of(const RunFacts& run) {
  return fmt::format("{} core{}{}{}", run.cores, run.cores == 1 ? "" : "s", run.machine.empty() ? "" : " of ",
                     run.machine);
}

std::string load_text(const Digest& digest) {
  return fmt::format(
      "Load of the machine while measuring (1 minute average, the benchmark's own work included): {:.1f} to {:.1f}.",
      digest.load_min, digest.load_max);
}

}  // namespace

std::string html_report(const Results& results) {
  const Digest digest = digest_of(results.records);
  std::string out(kHead);
  out += fmt::format("<h1>Coppice: measured</h1>\n<p>{}</p>\n<p>{}</p>\n<ul>\n", escape_html(kHow), load_text(digest));
  for (const RunFacts& run : results.runs) {
    out += fmt::format("<li>{}, commit {}, {}: <code>{}</code></li>\n", escape_html(run.time), escape_html(run.commit),
                       escape_html(machine_of(run)), escape_html(run.command));
  }
  out += "</ul>\n";
  for (const Section& section : digest.sections) {
    out += fmt::format("<h2>{}</h2>\n<p>{}</p>\n<div class=\"plots\">\n", escape_html(title_of(section)),
                       escape_html(section.question));
    for (const std::string_view measure : kPlotted) {
      const Chart chart = chart_of(section, measure, digest.servers);
      if (!chart.points.empty()) out += svg_of(chart);
    }
    out += "</div>\n" + html_table(table_of(section, digest.servers));
    for (const std::string& note : notes_of(section)) out += "<p class=\"note\">" + escape_html(note) + "</p>\n";
  }
  return out + "</body></html>\n";
}

std::string markdown_report(const Results& results) {
  const Digest digest = digest_of(results.records);
  std::string out = std::string(kHow) + "\n\n" + load_text(digest) + "\n\n";
  for (const RunFacts& run : results.runs) {
    out += fmt::format("- {}, commit {}, {}: `{}`\n", run.time, run.commit, machine_of(run), run.command);
  }
  for (const Section& section : digest.sections) {
    out += fmt::format("\n### {}\n\n{}\n\n{}", title_of(section), section.question,
                       markdown_table(table_of(section, digest.servers)));
    for (const std::string& note : notes_of(section)) out += "\n" + note + "\n";
  }
  return out;
}

}  // namespace coppice::bench
