#include "report/digest.h"

#include <algorithm>

namespace coppice::bench {
namespace {

// The element that matches, added at the end if there is none.
template <class T, class Match>
T& find_or_add(std::vector<T>& all, Match match, T fresh) {
  const auto it = std::ranges::find_if(all, match);
  return it != all.end() ? *it : all.emplace_back(std::move(fresh));
}

void add_record(Section& section, const Record& r) {
  VariantDigest& variant = find_or_add(section.variants, [&](const VariantDigest& v) { return v.label == r.variant; },
                                       {r.variant, r.x, {}, {}, 0});
  if (r.left_out) ++variant.n_left_out;
  if (!r.error.empty()) variant.failures.push_back(r.server + ", " + r.variant + ": " + r.error);
  for (const Measure& m : r.measures) {
    Row& row = find_or_add(variant.rows, [&](const Row& x) { return x.name == m.name; }, {m.name, m.unit, {}});
    row.values[r.server][{r.run, r.repeat}] = m.value;
  }
}

}  // namespace

std::optional<Summary> Row::of(const std::string& server) const {
  const auto it = values.find(server);
  if (it == values.end()) return std::nullopt;
  std::vector<double> all;
  for (const auto& [moment, value] : it->second) all.push_back(value);
  return summarize(all);
}

std::optional<Summary> Row::ratio(const std::string& server, const std::string& base) const {
  const auto a = values.find(server), b = values.find(base);
  if (a == values.end() || b == values.end()) return std::nullopt;
  std::vector<double> ratios;
  for (const auto& [moment, value] : a->second) {
    const auto partner = b->second.find(moment);
    if (partner != b->second.end() && partner->second != 0) ratios.push_back(value / partner->second);
  }
  const Summary summary = summarize(ratios);
  return summary.n > 0 ? std::optional(summary) : std::nullopt;
}

const Row* VariantDigest::find(std::string_view measure) const {
  const auto it = std::ranges::find(rows, measure, &Row::name);
  return it == rows.end() ? nullptr : &*it;
}

Digest digest_of(const std::vector<Record>& records) {
  Digest digest;
  if (!records.empty()) digest.load_min = digest.load_max = records.front().load;
  for (const Record& r : records) {
    digest.load_min = std::min(digest.load_min, r.load);
    digest.load_max = std::max(digest.load_max, r.load);
    if (!r.left_out && r.server != kFloorName && std::ranges::find(digest.servers, r.server) == digest.servers.end()) {
      digest.servers.push_back(r.server);
    }
    add_record(
        find_or_add(digest.sections, [&](const Section& s) { return s.model == r.model && s.scenario == r.scenario; },
                    {r.model, r.scenario, r.question, r.x_label, {}}),
        r);
  }
  return digest;
}

}  // namespace coppice::bench
