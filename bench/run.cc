#include "run.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "peers/cleanup.h"
#include "report/digest.h"
#include "report/progress.h"
#include "report/text.h"

namespace coppice::bench {
namespace {

double load_now() {
  std::array<double, 1> load{};
  return ::getloadavg(load.data(), 1) == 1 ? load[0] : 0.0;
}

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

  Result<RunEnd> run() {
    if (scratch_.path().empty()) return std::unexpected("cannot make a temporary folder");
    if (const Status s = find_peers(); !s) return std::unexpected(s.error());
    if (const Status s = make_plan(); !s) return std::unexpected(s.error());
    end_.results.runs.push_back(options_.facts);
    if (const Status s = write(to_line(options_.facts)); !s) return std::unexpected(s.error());
    Progress progress(static_cast<int>(plan_.size()) * options_.repeats, options_.part, options_.budget_s,
                      options_.later_s);
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      for (Item& item : plan_) run_item(item, repeat, progress);
    }
    progress.clear();
    print();
    return std::move(end_);
  }

 private:
  // A variant, with what its last repeat took.
  struct Item {
    const Scenario* scenario;
    const Variant* variant;
    double took_s = 0;
  };

  Status find_peers() {
    for (const NamedText& p : options_.peers) {
      const Result<Url> url = parse_url(p.text);
      if (!url) return std::unexpected(p.name + ": " + url.error());
      peers_.push_back(std::make_unique<Peer>(p.name, *url));
      // Better known now than after the others' minutes.
      if (const Status s = peers_.back()->start({}); !s) return std::unexpected(s.error());
    }
    if (peers_.empty()) return std::unexpected("no server to measure: see --spawn and --peer");
    std::set<std::string> names{std::string(kFloorName)};
    for (const auto& peer : peers_) {
      if (!names.insert(peer->name()).second) return std::unexpected("two servers are called " + peer->name());
    }
    return {};
  }

  Status make_plan() {
    for (const std::string& name : options_.scenarios) {
      Result<Scenario> scenario = make_scenario(name, options_.scenario);
      if (!scenario) return std::unexpected(scenario.error());
      scenarios_.push_back(std::make_unique<Scenario>(std::move(*scenario)));
      for (const Variant& variant : scenarios_.back()->variants) plan_.push_back({scenarios_.back().get(), &variant});
    }
    return {};
  }

  Record record_of(const Item& item, int repeat) const {
    return {.scenario = item.scenario->name,
            .question = item.scenario->question,
            .x_label = item.scenario->x_label,
            .variant = item.variant->label,
            .model = options_.model.name,
            .server = "",
            .x = item.variant->x,
            .repeat = repeat,
            .load = load_now(),
            .measures = {},
            .error = ""};
  }

  void run_item(Item& item, int repeat, Progress& progress) {
    Record record = record_of(item, repeat);
    const double begin_s = progress.elapsed_s();
    if (options_.budget_s > 0 && begin_s + item.took_s > options_.budget_s) {
      record.left_out = true;
      keep(std::move(record));
    } else {
      run_episodes(*item.variant, std::move(record), progress);
      item.took_s = progress.elapsed_s() - begin_s;
    }
    ++done_;
  }

  void run_episodes(const Variant& variant, Record record, Progress& progress) {
    const std::string what = fmt::format("{} ({}): ", record.scenario, variant.label);
    const std::uint64_t seed = seed_of(options_.seed, record.scenario + variant.label, record.repeat);
    for (const auto& peer : peers_) {
      if (variant.restarts && !peer->can_restart()) continue;
      progress.show(done_, what + peer->name());
      record.server = peer->name();
      bool gone = false;
      Result<Episode> measured = episode(variant, *peer, seed, gone);
      add(record, std::move(measured), variant, progress, gone);
    }
    if (floor_ && variant.floor) {
      progress.show(done_, what + std::string(kFloorName));
      record.server = kFloorName;
      const Status open = floor_->open(variant.needs.cells, variant.needs.slots);
      add(record, open ? variant.floor(*floor_) : std::unexpected(open.error()), variant, progress);
      floor_->close();  // its threads and memory are in nobody's way
    }
  }

  // `gone`: set if the server did not outlive it.
  Result<Episode> episode(const Variant& variant, Peer& peer, std::uint64_t seed, bool& gone) {
    const Status started = peer.start(variant.needs);
    Result<Episode> measured = started ? variant.run(peer, seed) : std::unexpected(started.error());
    if (!measured) {
      const std::optional<std::string> lost = peer.lost();
      gone = lost.has_value();
      if (gone && started) measured = std::unexpected(fmt::format("{} in the middle: {}", *lost, measured.error()));
    }
    peer.stop();
    return measured;
  }

  void add(Record record, Result<Episode> measured, const Variant& variant, Progress& progress, bool gone = false) {
    if (measured) {
      record.measures = std::move(*measured);
      if (record.server == options_.require) check_counts(record, variant);
    } else {
      record.error = measured.error();
      progress.clear();
      fmt::print(stderr, "{}, {}, {}: {}\n", record.scenario, record.variant, record.server, record.error);
      keep_logs();
      if (gone || record.server == options_.require || record.server == kFloorName) {
        fail(fmt::format("{}, {}, {}: {}", record.scenario, record.variant, record.server, record.error));
      }
    }
    keep(std::move(record));
  }

  void keep(Record record) {
    if (const Status s = write(to_line(record)); !s) fail(s.error());
    end_.results.records.push_back(std::move(record));
  }

  void keep_logs() const {
    if (options_.logs.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(options_.logs, ignored);
    for (const auto& file : std::filesystem::directory_iterator(scratch_.path(), ignored)) {
      if (file.path().extension() != ".log") continue;
      std::filesystem::copy_file(file, std::filesystem::path(options_.logs) / file.path().filename(),
                                 std::filesystem::copy_options::overwrite_existing, ignored);
    }
    fmt::print(stderr, "  logs: {}\n", options_.logs);
  }

  void check_counts(const Record& record, const Variant& variant) {
    const double computed = value_of(record.measures, "tokens_computed"),
                 optimum = value_of(record.measures, "tokens_optimum");
    if (computed <= optimum + variant.extra_tokens_max && computed > 0) return;
    fail(fmt::format("{}, {}: {} computed {} tokens; the optimum is {}, and at most {} more are allowed",
                     record.scenario, record.variant, record.server, computed, optimum, variant.extra_tokens_max));
  }

  void fail(const std::string& why) {
    if (end_.failure.empty()) end_.failure = why;
  }

  Status write(const std::string& line) {
    if (options_.out.empty()) return {};
    std::ofstream out(options_.out, std::ios::app);
    out << line << "\n";
    if (!out.flush()) return std::unexpected("cannot write " + options_.out);
    return {};
  }

  void print() const {
    const Digest digest = digest_of(end_.results.records);
    for (const Section& section : digest.sections) {
      fmt::print("\n{}, model of {}: {}\n{}", section.scenario, section.model, section.question,
                 plain_table(table_of(section, digest.servers)));
      for (const std::string& note : notes_of(section)) fmt::print("{}\n", note);
    }
    std::fflush(stdout);
  }

  const RunOptions& options_;
  ScratchFolder scratch_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::optional<Floor> floor_;
  std::vector<std::unique_ptr<Scenario>> scenarios_;
  std::vector<Item> plan_;
  RunEnd end_;
  int done_ = 0;
};

}  // namespace

Result<NamedText> parse_named(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    return std::unexpected(text + " is not NAME=...");
  }
  return NamedText{text.substr(0, equals), text.substr(equals + 1)};
}

Result<RunEnd> run(const RunOptions& options) { return Run(options).run(); }

}  // namespace coppice::bench
