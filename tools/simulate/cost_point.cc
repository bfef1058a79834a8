#include "simulate/cost_point.h"

#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace coppice::simulate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<Work, std::string_view>, 3> kNames{
    {{Work::step, "step"}, {Work::save, "save"}, {Work::restore, "restore"}}};

std::string_view name_of(Work work) {
  for (const auto& [w, name] : kNames) {
    if (w == work) return name;
  }
  return {};
}

Work work_of(std::string_view wanted) {
  for (const auto& [work, name] : kNames) {
    if (name == wanted) return work;
  }
  throw std::runtime_error("no such work: " + std::string(wanted));
}

}  // namespace

std::string to_line(const CostPoint& p) {
  return Json{{"work", name_of(p.work)}, {"tokens", p.tokens}, {"cells", p.cells}, {"us", p.us}}.dump();
}

bench::Result<CostPoints> parse_cost_points(std::string_view text) try {
  CostPoints out;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    if (out.about.empty()) {
      out.about = line;
      continue;
    }
    const Json json = Json::parse(line);
    const CostPoint point{.work = work_of(json.at("work").get<std::string>()),
                          .tokens = json.at("tokens"),
                          .cells = json.at("cells"),
                          .us = json.at("us")};
    if (point.tokens < 1 || point.us <= 0) return std::unexpected("an impossible cost: " + line);
    out.points.push_back(point);
  }
  return out;
} catch (const std::exception& e) {
  return std::unexpected(std::string("not a file of costs: ") + e.what());
}

bench::Result<CostPoints> read_cost_points(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  if (text.empty()) return std::unexpected("cannot read " + file.string());
  return parse_cost_points(text);
}

}  // namespace coppice::simulate
