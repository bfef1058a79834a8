#include "run.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>

#include "report/digest.h"
#include "report/progress.h"
#include "report/text.h"

namespace coppice::bench {
namespace {

double load_now() {
  std::array<double, 1> load{};
  return ::getloadavg(load.data(), 1) == 1 ? load[0] : 0.0;
}

// Where servers log and write; taken away at the end, unless something failed.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "coppice-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!keep_ && !path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void keep() { keep_ = true; }

 private:
  std::filesystem::path path_;
  bool keep_ = false;
};

std::uint64_t seed_of(std::uint64_t seed, std::string_view label, int repeat) {
  std::uint64_t d = mix(seed, static_cast<std::uint64_t>(repeat));
  for (const unsigned char c : label) d = mix(d, c);
  return d >> 20;  // short enough for a session's name
}

double value_of(const Episode& episode, std::string_view measure) {
  const auto it = std::ranges::find(episode, measure, &Measure::name);
  return it == episode.end() ? 0.0 : it->value;
}

class Run {
 public:
  explicit Run(const RunOptions& options) : options_(options) {
    const Launch launch{
        .command = "", .model = options.model.text, .threads = options.threads, .scratch = scratch_.path()};
    for (const NamedText& s : options.spawn) {
      Launch own = launch;
      own.command = s.text;
      peers_.push_back(std::make_unique<Peer>(s.name, std::move(own)));
    }
    if (!options.floor.empty()) {
      floor_.emplace(options.floor, options.model.text, options.threads, scratch_.path() / "floor.log");
    }
  }

  Result<Results> run() {
    for (const NamedText& p : options_.peers) {
      const Result<Url> url = parse_url(p.text);
      if (!url) return std::unexpected(url.error());
      peers_.push_back(std::make_unique<Peer>(p.name, *url));
    }
    if (peers_.empty()) return std::unexpected("no server to measure: see --spawn and --peer");
    std::vector<Scenario> scenarios;
    for (const std::string& name : options_.scenarios) {
      Result<Scenario> scenario = make_scenario(name, options_.scenario);
      if (!scenario) return std::unexpected(scenario.error());
      total_ += static_cast<int>(scenario->variants.size()) * options_.repeats;
      scenarios.push_back(std::move(*scenario));
    }
    results_.runs.push_back(options_.facts);
    if (const Status s = write(to_line(options_.facts)); !s) return std::unexpected(s.error());
    Progress progress(total_);
    for (const Scenario& scenario : scenarios) {
      const std::size_t before = results_.records.size();
      for (const Variant& variant : scenario.variants) run_variant(scenario, variant, progress);
      progress.clear();
      print({results_.records.begin() + static_cast<std::ptrdiff_t>(before), results_.records.end()});
    }
    if (!failure_.empty()) return std::unexpected(failure_);
    return results_;
  }

 private:
  void run_variant(const Scenario& scenario, const Variant& variant, Progress& progress) {
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      const std::uint64_t seed = seed_of(options_.seed, scenario.name + variant.label, repeat);
      Record record{.scenario = scenario.name,
                    .question = scenario.question,
                    .x_label = scenario.x_label,
                    .variant = variant.label,
                    .model = options_.model.name,
                    .server = "",
                    .x = variant.x,
                    .repeat = repeat,
                    .load = load_now(),
                    .measures = {},
                    .error = ""};
      for (const auto& peer : peers_) {
        if (variant.restarts && !peer->can_restart()) continue;
        progress.show(done_, fmt::format("{} ({}): {}", scenario.name, variant.label, peer->name()));
        record.server = peer->name();
        add(record, episode(variant, *peer, seed), variant);
      }
      if (floor_ && variant.floor) {
        progress.show(done_, fmt::format("{} ({}): floor", scenario.name, variant.label));
        record.server = kFloorName;
        const Status open = floor_->open(variant.needs.cells, variant.needs.slots);
        add(record, open ? variant.floor(*floor_) : std::unexpected(open.error()), variant);
      }
      ++done_;
    }
    if (floor_) floor_->close();  // its cells are of use to nobody now
  }

  Result<Episode> episode(const Variant& variant, Peer& peer, std::uint64_t seed) {
    if (const Status started = peer.start(variant.needs); !started) return std::unexpected(started.error());
    Result<Episode> measured = variant.run(peer, seed);
    peer.stop();
    return measured;
  }

  void add(Record record, Result<Episode> measured, const Variant& variant) {
    if (measured) {
      record.measures = std::move(*measured);
      if (record.server == options_.require) check_counts(record, variant);
    } else {
      record.error = measured.error();
      scratch_.keep();
      fmt::print(stderr, "\n{}, {}, {}: {}\n  logs are in {}\n", record.scenario, record.variant, record.server,
                 record.error, scratch_.path().string());
      if (record.server == options_.require || record.server == kFloorName) fail("an episode failed");
    }
    if (const Status s = write(to_line(record)); !s) fail(s.error());
    results_.records.push_back(std::move(record));
  }

  void check_counts(const Record& record, const Variant& variant) {
    const double computed = value_of(record.measures, "tokens_computed"),
                 optimum = value_of(record.measures, "tokens_optimum");
    if (computed <= optimum + variant.extra_tokens_max && computed > 0) return;
    fail(fmt::format("{}, {}: {} computed {} tokens; the optimum is {}, and at most {} more are allowed",
                     record.scenario, record.variant, record.server, computed, optimum, variant.extra_tokens_max));
  }

  void fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }

  Status write(const std::string& line) {
    if (options_.out.empty()) return {};
    std::ofstream out(options_.out, std::ios::app);
    out << line << "\n";
    if (!out.flush()) return std::unexpected("cannot write " + options_.out);
    return {};
  }

  void print(const std::vector<Record>& records) const {
    const Digest digest = digest_of(records);
    for (const Section& section : digest.sections) {
      fmt::print("\n{}, model of {}: {}\n{}", section.scenario, section.model, section.question,
                 plain_table(table_of(section, digest.servers)));
      for (const std::string& failure : failures_of(section)) fmt::print("failed: {}\n", failure);
    }
    std::fflush(stdout);
  }

  const RunOptions& options_;
  Scratch scratch_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::optional<Floor> floor_;
  Results results_;
  std::string failure_;
  int total_ = 0, done_ = 0;
};

}  // namespace

Result<NamedText> parse_named(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    return std::unexpected(text + " is not NAME=...");
  }
  return NamedText{text.substr(0, equals), text.substr(equals + 1)};
}

Result<Results> run(const RunOptions& options) { return Run(options).run(); }

}  // namespace coppice::bench
