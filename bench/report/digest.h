// Results put in order for people: by model and scenario, then variant, then measure, then server.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/record.h"
#include "stats/summary.h"

namespace coppice::bench {

// The name that the floor has among the servers.
inline constexpr std::string_view kFloorName = "floor";

// Which repeat of which run: what was measured right after one another.
using Moment = std::pair<int, int>;

// One measure of one variant, for all servers.
struct Row {
  std::string name;
  Unit unit = Unit::ms;
  std::map<std::string, std::map<Moment, double>> values;  // by server

  std::optional<Summary> of(const std::string& server) const;
  // Ratios of two servers' values of the same moment; nothing if there are none.
  std::optional<Summary> ratio(const std::string& server, const std::string& base) const;
};

struct VariantDigest {
  std::string label;
  std::optional<double> x;
  std::vector<Row> rows;
  std::vector<std::string> failures;  // of episodes, in words
  int n_left_out = 0;                 // repeats for which there was no time

  const Row* find(std::string_view measure) const;
};

struct Section {
  std::string model, scenario, question, x_label;
  std::vector<VariantDigest> variants;
};

struct Digest {
  std::vector<std::string>
      servers;  // in the order they were measured, without the floor; the first is the one of interest
  std::vector<Section> sections;
  double load_min = 0, load_max = 0;
};

Digest digest_of(const std::vector<Record>& records);

}  // namespace coppice::bench
