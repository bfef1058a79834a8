#include "app/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace coppice::app {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr double kKi = 1024;
constexpr std::array<Unit, 14> kUnits{{{"", 1},
                                       {"b", 1},
                                       {"k", kKi},
                                       {"kib", kKi},
                                       {"kb", 1e3},
                                       {"m", kKi* kKi},
                                       {"mib", kKi* kKi},
                                       {"mb", 1e6},
                                       {"g", kKi* kKi* kKi},
                                       {"gib", kKi* kKi* kKi},
                                       {"gb", 1e9},
                                       {"t", kKi* kKi* kKi* kKi},
                                       {"tib", kKi* kKi* kKi* kKi},
                                       {"tb", 1e12}}};

// Three significant digits at most: "1.8", "18.2", "182".
std::string short_number(double value) {
  return value < 99.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

std::string scaled(double value, double step, const std::array<std::string_view, 5>& names, std::string_view space) {
  std::size_t i = 0;
  // 0.9995: what would be rounded up to a full step already reads better in the next unit.
  while (i + 1 < names.size() && value >= step * 0.9995) {
    value /= step;
    ++i;
  }
  return (i == 0 ? fmt::format("{:.0f}", value) : short_number(value)) + std::string(names[i].empty() ? "" : space) +
         std::string(names[i]);
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto wrong = [&] {
    return invalid("'" + std::string(text) + "' is not a size; write a number of bytes, or one like 512MiB or 8GiB");
  };
  double number = 0;
  auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return wrong();
  std::string unit;
  for (const char* c = stopped; c != text.data() + text.size(); ++c) {
    if (*c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  const auto found = std::ranges::find(kUnits, unit, &Unit::name);
  if (found == kUnits.end()) return wrong();
  const double bytes = number * found->factor;
  if (bytes >= 9e18) return wrong();
  return static_cast<std::uint64_t>(bytes);
}

Result<std::int64_t> parse_int(std::string_view text, std::int64_t min, std::int64_t max) {
  std::int64_t value = 0;
  auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stopped != text.data() + text.size() || value < min || value > max) {
    return invalid(fmt::format("'{}' is not a whole number from {} to {}", text, min, max));
  }
  return value;
}

Result<std::uint64_t> parse_age(std::string_view text) {
  constexpr std::pair<char, std::int64_t> units[] = {
      {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 24 * 3600}, {'w', 7 * 24 * 3600}};
  for (const auto& [letter, unit_s] : units) {
    if (text.empty() || text.back() != letter) continue;
    const auto number = parse_int(text.substr(0, text.size() - 1), 0, 1'000'000);
    if (number) return static_cast<std::uint64_t>(*number * unit_s);
  }
  return invalid("'" + std::string(text) +
                 "' is not an age; write a whole number and s, m, h, d or w, like 12h or 30d");
}

std::string human_age(std::uint64_t age_s) {
  if (age_s < 100) return fmt::format("{} s", age_s);
  if (age_s < 100 * 60) return fmt::format("{} min", age_s / 60);
  if (age_s < 48 * 3600) return fmt::format("{} h", age_s / 3600);
  return fmt::format("{} d", age_s / (24 * 3600));
}

std::string human_bytes(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), kKi, {"B", "KiB", "MiB", "GiB", "TiB"}, " ");
}

std::string human_count(std::uint64_t count) {
  return scaled(static_cast<double>(count), 1000, {"", "K", "M", "B", "T"}, "");
}

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<std::size_t>(i), ",");
  }
  return digits;
}

}  // namespace coppice::app
