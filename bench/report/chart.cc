#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace coppice::bench {
namespace {

constexpr double kWidth = 640, kHeight = 300, kLeft = 64, kRight = 16, kTop = 46, kBottom = 62;
constexpr double kLogFrom = 20;  // a range of x beyond which its logarithm is drawn
// Distinct for colour-blind readers too (Okabe and Ito 2008).
constexpr std::array<std::string_view, 5> kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"};

std::string tick_text(double value) {
  if (value >= 1000) return fmt::format("{:g}k", value / 1000);
  return fmt::format("{:g}", value);
}

// The smallest of 1, 2, 5 times a power of ten that needs at most five steps.
double step_for(double top) {
  const double power = std::pow(10, std::floor(std::log10(top / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power * 5 >= top) return factor * power;
  }
  return 10 * power;
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    double top = 0;
    for (const ChartSeries& s : chart.series) {
      for (const auto& v : s.values) top = std::max(top, v ? v->max : 0.0);
    }
    if (top <= 0) top = 1;
    step_ = step_for(top);
    top_ = std::ceil(top / step_) * step_;
  }

  std::string draw() {
    add(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth, kHeight, escape_html(chart_.title));
    text(kLeft, 16, "start", "title",
         fmt::format("{} ({}, {} is better)", chart_.title, chart_.unit, chart_.more_is_better ? "more" : "less"));
    legend();
    axis();
    if (is_line()) {
      lines();
    } else {
      bars();
    }
    out_ += "</svg>\n";
    return out_;
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  void text(double x, double y, std::string_view anchor, std::string_view type, std::string_view what) {
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>)", x, y, anchor, type, escape_html(what));
  }

  bool is_line() const {
    return chart_.points.size() > 1 &&
           std::ranges::all_of(chart_.points, [](const ChartPoint& p) { return p.x.has_value(); });
  }
  double y(double value) const { return kHeight - kBottom - value / top_ * (kHeight - kTop - kBottom); }
  // What is no server looks like none, and the two bounds are not alike.
  std::string_view colour(std::size_t series) const {
    const std::string& name = chart_.series[series].name;
    return name == "floor" ? "#808080" : name == "optimum" ? "#56B4E9" : kColours[series % kColours.size()];
  }

  void legend() {
    double x = kLeft;
    for (std::size_t s = 0; s < chart_.series.size(); ++s) {
      add(R"(<rect x="{}" y="25" width="10" height="10" fill="{}"/>)", x, colour(s));
      text(x + 14, 34, "start", "small", chart_.series[s].name);
      x += 34 + 7.0 * static_cast<double>(chart_.series[s].name.size());
    }
  }

  void axis() {
    for (double v = 0; v <= top_ * 1.0001; v += step_) {
      add(R"(<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" class="grid"/>)", kLeft, kWidth - kRight, y(v), y(v));
      text(kLeft - 6, y(v) + 4, "end", "small", tick_text(v));
    }
    if (is_line()) text((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", "small", chart_.x_label);
  }

  void whisker(double x, const Summary& s) {
    if (s.min == s.max) return;
    add(R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}" class="whisker"/>)", x, y(s.min), y(s.max));
  }

  std::string hint(std::size_t series, std::size_t point, const Summary& s) const {
    return escape_html(fmt::format("{}, {}: {:.4g} {} ({:.4g} to {:.4g})", chart_.series[series].name,
                                   chart_.points[point].label, s.median, chart_.unit, s.min, s.max));
  }

  void bars() {
    const double group = (kWidth - kLeft - kRight) / static_cast<double>(chart_.points.size());
    const double bar = std::min(group * 0.8 / static_cast<double>(chart_.series.size()), 46.0);
    for (std::size_t p = 0; p < chart_.points.size(); ++p) {
      const double middle = kLeft + group * (static_cast<double>(p) + 0.5);
      double x = middle - bar * static_cast<double>(chart_.series.size()) / 2;
      for (std::size_t s = 0; s < chart_.series.size(); ++s, x += bar) {
        const auto& value = chart_.series[s].values[p];
        if (!value) continue;
        add(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"><title>{}</title></rect>)", x + 1,
            y(value->median), bar - 2, kHeight - kBottom - y(value->median), colour(s), hint(s, p, *value));
        whisker(x + bar / 2, *value);
      }
      wrapped_label(middle, chart_.points[p].label, group);
    }
  }

  // At commas, as variants are described.
  void wrapped_label(double x, std::string_view label, double width) {
    const auto fits = static_cast<std::size_t>(width / 5.5);
    double line_y = kHeight - kBottom + 14;
    while (!label.empty()) {
      std::size_t end = label.find(", ");
      while (end != std::string_view::npos && label.find(", ", end + 2) < fits) end = label.find(", ", end + 2);
      if (end == std::string_view::npos || label.size() <= fits) end = label.size();
      text(x, line_y, "middle", "small", label.substr(0, end));
      label.remove_prefix(std::min(end + 2, label.size()));
      line_y += 13;
    }
  }

  void lines() {
    double low = *chart_.points.front().x, high = low;
    for (const ChartPoint& p : chart_.points) low = std::min(low, *p.x), high = std::max(high, *p.x);
    const bool log = low > 0 && high / low > kLogFrom;
    const auto place = [&](double v) { return log ? std::log(v) : v; };
    const auto x = [&](double v) {
      const double width = kWidth - kLeft - kRight - 24;
      return high > low ? kLeft + 12 + (place(v) - place(low)) / (place(high) - place(low)) * width
                        : kLeft + 12 + width / 2;
    };
    for (const ChartPoint& p : chart_.points) text(x(*p.x), kHeight - kBottom + 16, "middle", "small", tick_text(*p.x));
    for (std::size_t s = 0; s < chart_.series.size(); ++s) {
      std::string path;
      for (std::size_t p = 0; p < chart_.points.size(); ++p) {
        const auto& value = chart_.series[s].values[p];
        if (!value) continue;
        const double at = x(*chart_.points[p].x);
        path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : " L", at, y(value->median));
        whisker(at, *value);
        add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"><title>{}</title></circle>)", at, y(value->median),
            colour(s), hint(s, p, *value));
      }
      if (!path.empty()) add(R"(<path d="{}" fill="none" stroke="{}" stroke-width="2"/>)", path, colour(s));
    }
  }

  const Chart& chart_;
  std::string out_;
  double top_ = 1, step_ = 1;
};

}  // namespace

std::string svg_of(const Chart& chart) { return Drawing(chart).draw(); }

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace coppice::bench
