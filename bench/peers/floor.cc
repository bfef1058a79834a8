#include "peers/floor.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "stats/summary.h"

namespace coppice::bench {

Status Floor::open(int cells, int sequences) {
  if (child_ && cells_ == cells && sequences_ == sequences) return {};
  child_.reset();
  const std::vector<std::string> args = {program_,
                                         "--model",
                                         model_,
                                         "--threads",
                                         std::to_string(threads_),
                                         "--cells",
                                         std::to_string(cells),
                                         "--sequences",
                                         std::to_string(sequences)};
  Result<Child> child = Child::start(args, log_, true);
  if (!child) return std::unexpected(child.error());
  child_ = std::move(*child);
  cells_ = cells, sequences_ = sequences;
  return {};
}

Result<FloorTimes> Floor::measure(const FloorPoint& point) {
  constexpr int times = 3;
  const nlohmann::json request = {
      {"prefix", point.prefix}, {"fresh", point.fresh}, {"decode", point.decode}, {"streams", point.streams}};
  std::vector<double> first_ms, tokens_per_s;
  for (int i = 0; i < times; ++i) {
    const Result<FloorTimes> once = measure_once(request.dump());
    if (!once) return std::unexpected(once.error() + ", see " + log_.string());
    first_ms.push_back(once->first_ms);
    tokens_per_s.push_back(once->tokens_per_s);
  }
  return FloorTimes{percentile(first_ms, 0.5), percentile(tokens_per_s, 0.5)};
}

Result<FloorTimes> Floor::measure_once(const std::string& request) {
  if (const Status s = child_->write_line(request); !s) return std::unexpected(s.error());
  const Result<std::string> line = child_->read_line();
  if (!line) return std::unexpected(line.error());
  const auto answer = nlohmann::json::parse(*line, nullptr, false);
  if (!answer.is_object() || answer.contains("error")) return std::unexpected("coppice-floor says: " + *line);
  return FloorTimes{answer.value("first_ms", 0.0), answer.value("tokens_per_s", 0.0)};
}

}  // namespace coppice::bench
