#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace coppice::bench {
namespace {

std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

std::string significant(double value) {
  const double size = std::abs(value);
  if (size >= 100) return grouped(value);
  return fmt::format("{:.{}f}", value, size >= 10 ? 1 : 2);
}

template <class Text>
std::string spread(const Summary& s, Text text) {
  const std::string median = text(s.median), low = text(s.min), high = text(s.max);
  return low == high ? median : fmt::format("{} ({}-{})", median, low, high);
}

}  // namespace

std::string number_text(double value, Unit unit) { return is_exact(unit) ? grouped(value) : significant(value); }

std::string summary_text(const Summary& summary, Unit unit) {
  return spread(summary, [unit](double v) { return number_text(v, unit); });
}

std::string ratio_text(const Summary& ratio) { return spread(ratio, significant); }

std::vector<std::vector<std::string>> table_of(const Section& section, const std::vector<std::string>& servers) {
  const std::string floor(kFloorName);
  std::vector<std::string> head = {"variant", "measure", "unit"};
  for (const std::string& s : servers) head.push_back(s);
  head.push_back(floor);
  for (std::size_t i = 1; i < servers.size(); ++i) head.push_back(servers[i] + " / " + servers[0]);
  for (const std::string& s : servers) head.push_back(s + " / " + floor);

  std::vector<std::vector<std::string>> table = {head};
  for (const VariantDigest& variant : section.variants) {
    std::string label = variant.label;
    for (const Row& row : variant.rows) {
      std::vector<std::string> cells = {std::exchange(label, ""), row.name, std::string(name(row.unit))};
      const auto value = [&](const std::string& s) {
        const auto summary = row.of(s);
        return summary ? summary_text(*summary, row.unit) : "";
      };
      const auto ratio = [&](const std::string& s, const std::string& base) {
        const auto summary = row.ratio(s, base);
        return summary ? ratio_text(*summary) : "";
      };
      for (const std::string& s : servers) cells.push_back(value(s));
      cells.push_back(value(floor));
      for (std::size_t i = 1; i < servers.size(); ++i) cells.push_back(ratio(servers[i], servers[0]));
      for (const std::string& s : servers) cells.push_back(ratio(s, floor));
      table.push_back(std::move(cells));
    }
  }
  return table;
}

std::vector<std::string> notes_of(const Section& section) {
  std::vector<std::string> all;
  for (const VariantDigest& variant : section.variants) {
    for (const std::string& failure : variant.failures) {
      const std::string note = fmt::format("Failed: {}", failure);
      if (std::ranges::find(all, note) == all.end()) all.push_back(note);
    }
    if (variant.n_left_out > 0) {
      all.push_back(fmt::format("Left out, as the time was up: {}, {} repeat{}", variant.label, variant.n_left_out,
                                variant.n_left_out == 1 ? "" : "s"));
    }
  }
  return all;
}

std::string plain_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (const std::string& cell : rows[r]) text += fmt::format("| {} ", cell);
    text += "|\n";
    if (r > 0) continue;
    for (std::size_t i = 0; i < rows[r].size(); ++i) text += "|---";
    text += "|\n";
  }
  return text;
}

}  // namespace coppice::bench
