#include "report/record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace coppice::bench {
namespace {

using Json = nlohmann::json;

RunFacts facts_of(const Json& json) {
  return {json.at("time"), json.at("commit"), json.at("command"), json.value("machine", ""), json.at("cores")};
}

Record record_of(const Json& json) {
  Record r{.scenario = json.at("scenario"),
           .question = json.at("question"),
           .x_label = json.at("x_label"),
           .variant = json.at("variant"),
           .model = json.at("model"),
           .server = json.at("server"),
           .x = {},
           .repeat = json.at("repeat"),
           .load = json.at("load"),
           .measures = {},
           .error = json.at("error")};
  r.left_out = json.value("left_out", false);
  if (json.at("x").is_number()) r.x = json["x"].get<double>();
  for (const Json& m : json.at("measures")) {
    const std::optional<Unit> unit = unit_of(m.at("unit").get<std::string>());
    if (!unit) throw std::invalid_argument("unknown unit " + m.at("unit").dump());
    r.measures.push_back({m.at("name"), *unit, m.at("value")});
  }
  return r;
}

}  // namespace

std::string to_line(const RunFacts& facts) {
  return Json{{"kind", "run"},
              {"time", facts.time},
              {"commit", facts.commit},
              {"command", facts.command},
              {"machine", facts.machine},
              {"cores", facts.cores}}
      .dump();
}

std::string to_line(const Record& record) {
  Json measures = Json::array();
  for (const Measure& m : record.measures) {
    measures.push_back({{"name", m.name}, {"unit", name(m.unit)}, {"value", m.value}});
  }
  return Json{{"kind", "episode"},
              {"scenario", record.scenario},
              {"question", record.question},
              {"x_label", record.x_label},
              {"variant", record.variant},
              {"x", record.x ? Json(*record.x) : Json(nullptr)},
              {"model", record.model},
              {"server", record.server},
              {"repeat", record.repeat},
              {"load", record.load},
              {"measures", std::move(measures)},
              {"error", record.error},
              {"left_out", record.left_out}}
      .dump();
}

Status read_lines(std::string_view text, Results& results) {
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    try {
      const Json json = Json::parse(line);
      if (json.at("kind") == "run") {
        results.runs.push_back(facts_of(json));
      } else {
        results.records.push_back(record_of(json));
        results.records.back().run = static_cast<int>(results.runs.size());
      }
    } catch (const std::exception& e) {
      return std::unexpected("line " + std::to_string(number) + " is no result: " + e.what());
    }
  }
  return {};
}

}  // namespace coppice::bench
