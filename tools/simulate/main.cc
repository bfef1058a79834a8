// coppice-simulate: recorded agent sessions against the scheduler on a machine that is only counted, beside other
// policies (docs/simulation.md). JSON lines go to --out, in the form of `coppice-bench report`; tables to the terminal.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>

#include "report/record.h"
#include "report/text.h"
#include "simulate/policies.h"
#include "stats/summary.h"

namespace coppice::simulate {
namespace {

struct Options {
  std::string costs, traces, out, commit;
  std::vector<int> sessions{1, 8, 32, 128};
  std::vector<double> budgets{1, 2, 5, 10, 25, 50, 100};
  std::vector<std::string> policies{"coppice", "arrival", "llama-server", "llama-server-np"};
  WorkloadOptions workload;
  double speed = 1;
  int slots = 4, cells = 0;
  int rotation = 0;  // conversations; 0: the traces
};

template <class T>
T value_or_throw(bench::Result<T> result) {
  if (!result) throw std::runtime_error(result.error());
  return *std::move(result);
}

// One table of each measure: a row for each number of sessions and budget, a column for each policy.
class Tables {
 public:
  explicit Tables(std::vector<std::string> policies) : policies_(std::move(policies)) {}

  void begin_row(int sessions, double budget) { row_ = {std::to_string(sessions), fmt::format("{:g}%", budget)}; }
  void add(const std::string& title, const std::string& cell) {
    auto& rows = tables_[title];
    if (rows.empty()) {
      titles_.push_back(title);
      rows.push_back({"sessions", "host memory"});
      rows[0].insert(rows[0].end(), policies_.begin(), policies_.end());
    }
    if (rows.back()[0] != row_[0] || rows.back()[1] != row_[1]) rows.push_back(row_);
    rows.back().push_back(cell);
  }
  std::string text() const {
    std::string out;
    for (const std::string& title : titles_) {
      out += fmt::format("{}\n\n{}\n", title, bench::markdown_table(tables_.at(title)));
    }
    return out;
  }

 private:
  std::vector<std::string> policies_, titles_, row_;
  std::map<std::string, std::vector<std::vector<std::string>>> tables_;
};

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string error_text(const FitError& e) {
  return fmt::format("{} mean, {} worst of {}", percent(e.mean), percent(e.worst), e.n);
}

std::string line_text(const Costs::Line& line) {
  return fmt::format("{:.1f} + {:.3f} n + {:.5f} c + {:.7f} n c", line[0], line[1], line[2], line[3]);
}

void print_fit(const CostPoints& points) {
  const Costs costs = value_or_throw(Costs::fit(points.points));
  const HeldBack held = value_or_throw(held_back_error(points.points));
  const std::vector<std::vector<std::string>> rows{
      {"work", "microseconds for n tokens with c cells in use", "error on points held back"},
      {"step of 8 tokens at most", line_text(costs.decoding()), error_text(held.decoding)},
      {"step of more", line_text(costs.prompts()), error_text(held.prompts)},
      {"save", line_text(costs.saving()), error_text(held.saving)},
      {"restore", line_text(costs.restoring()), error_text(held.restoring)}};
  std::cout << points.about << "\n\n" << bench::markdown_table(rows) << std::endl;
}

// Faster by a factor: all times are divided by it.
CostPoints scaled(CostPoints points, double speed) {
  for (CostPoint& p : points.points) p.us /= speed;
  return points;
}

class Sweep {
 public:
  Sweep(const Options& options, const Costs& costs)
      : options_(options), costs_(costs), tables_(options.policies), out_(options.out) {
    if (!options.out.empty() && !out_) throw std::runtime_error("cannot write " + options.out);
  }

  void run(const std::string& command) {
    if (out_)
      out_ << bench::to_line(bench::RunFacts{.commit = options_.commit, .command = command, .cores = 1}) << '\n';
    const std::vector<bench::Trace> traces =
        options_.rotation > 0 ? std::vector{rotation_trace(40, 160)} : value_or_throw(read_traces(options_.traces));
    for (const int sessions : options_.sessions) {
      WorkloadOptions wanted = options_.workload;
      wanted.sessions = sessions;
      const Workload workload(traces, wanted);
      best_ = workload.best();
      std::cout << fmt::format("{} sessions: {} requests, {} prompt tokens, {} of them new; {} to hold, the longest {}",
                               sessions, best_.requests, best_.prompt_tokens, best_.computed, best_.held, best_.longest)
                << std::endl;
      for (const double budget : options_.budgets) {
        tables_.begin_row(sessions, budget);
        for (const std::string& policy : options_.policies) run_one(workload, budget, policy);
      }
    }
    std::cout << '\n' << tables_.text();
  }

 private:
  void run_one(const Workload& workload, double budget, const std::string& policy) {
    const Room room{.cells = options_.cells > 0 ? options_.cells : options_.slots * (best_.longest + 1),
                    .slots = options_.slots,
                    .host_tokens = static_cast<std::int64_t>(budget / 100 * static_cast<double>(best_.held))};
    const auto began = std::chrono::steady_clock::now();
    const Outcome o = replay(workload, value_or_throw(make_policy(policy, room, costs_)));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const double hits = static_cast<double>(o.prompt_tokens - o.computed) /
                        static_cast<double>(std::max<std::int64_t>(best_.prompt_tokens - best_.computed, 1));
    const double p50_ms = bench::percentile(o.first_ms, 0.5), p95_ms = bench::percentile(o.first_ms, 0.95);
    tables_.add("Hit share of the optimum", percent(hits));
    const double longest_ms = bench::percentile(o.first_ms, 1);
    tables_.add("First token, s: median / 95th percentile / longest",
                fmt::format("{:.2f} / {:.1f} / {:.0f}", p50_ms / 1e3, p95_ms / 1e3, longest_ms / 1e3));
    tables_.add("Makespan, h (of that, busy)", fmt::format("{:.2f} ({:.2f})", o.makespan_s / 3600, o.working_s / 3600));
    std::cerr << fmt::format("{:4} sessions {:5g}% {:16} hits {:6} first {:.2f}/{:.2f} s, {:.2f} h, took {:.1f} s\n",
                             workload.sessions(), budget, policy, percent(hits), p50_ms / 1e3, p95_ms / 1e3,
                             o.makespan_s / 3600, took.count());
    if (!out_) return;
    const auto count = [](std::int64_t n) { return static_cast<double>(n); };
    bench::Record record{.scenario = fmt::format("simulate, {} sessions", workload.sessions()),
                         .question = "How much is computed again with host memory for a part of all KV?",
                         .x_label = "host memory, % of all KV",
                         .variant = fmt::format("{:g}%", budget),
                         .model = "simulated",
                         .server = policy,
                         .x = budget,
                         .measures = {{"computed", bench::Unit::tokens, count(o.computed)},
                                      {"computed_best", bench::Unit::tokens, count(best_.computed)},
                                      {"prompt", bench::Unit::tokens, count(o.prompt_tokens)},
                                      {"first_ms_p50", bench::Unit::ms, p50_ms},
                                      {"first_ms_p95", bench::Unit::ms, p95_ms},
                                      {"first_ms_longest", bench::Unit::ms, longest_ms},
                                      {"makespan_ms", bench::Unit::ms, o.makespan_s * 1e3}},
                         .error = {}};
    out_ << bench::to_line(record) << std::endl;
  }

  const Options& options_;
  const Costs& costs_;
  Tables tables_;
  std::ofstream out_;
  Workload::Best best_;
};

int run(int argc, char** argv) {
  spdlog::set_level(spdlog::level::off);
  Options o;
  CLI::App app("Replays recorded agent sessions against Coppice's scheduler and other policies, without a model");
  app.add_option("--costs", o.costs, "Measured costs, of measure_costs")->default_val(COPPICE_SIMULATE_COSTS);
  app.add_option("--traces", o.traces, "Folder of traces")->default_val(COPPICE_BENCH_TRACES);
  app.add_option("--sessions", o.sessions, "Numbers of sessions")->delimiter(',')->capture_default_str();
  app.add_option("--budgets", o.budgets, "Host memory, in % of all KV")->delimiter(',')->capture_default_str();
  app.add_option("--policies", o.policies, "What to compare")->delimiter(',')->capture_default_str();
  app.add_option("--slots", o.slots, "Requests that run at a time")->capture_default_str();
  app.add_option("--cells", o.cells, "Cells of the device; 0: the longest request for each slot");
  app.add_option("--tokens-per-block", o.workload.tokens_per_block, "For the 64 of the traces")->capture_default_str();
  app.add_option("--requests", o.workload.requests_max, "Of each agent, at most");
  app.add_option("--think-max", o.workload.think_s_max, "Longer pauses are cut, s")->capture_default_str();
  app.add_option("--seed", o.workload.seed)->capture_default_str();
  app.add_option("--speed", o.speed, "How much faster the machine is than the measured one")->capture_default_str();
  app.add_option("--rotation", o.rotation, "1: conversations of equal length in turn, not the traces");
  app.add_option("--out", o.out, "File for results as JSON lines");
  app.add_option("--commit", o.commit, "Named in the results");
  bool fit_only = false, list = false;
  app.add_flag("--fit", fit_only, "Only show the fit of the costs and its error");
  app.add_flag("--list", list, "Only list the policies");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    for (const Named& n : policy_names()) std::cout << fmt::format("{:16} {}\n", n.name, n.about);
    return 0;
  }
  if (o.rotation > 0) o.workload.start_window_s = 60;
  const CostPoints points = scaled(value_or_throw(read_cost_points(o.costs)), o.speed);
  print_fit(points);
  if (fit_only) return 0;
  const Costs costs = value_or_throw(Costs::fit(points.points));
  std::string command = "coppice-simulate";
  for (int i = 1; i < argc; ++i) command += fmt::format(" {}", argv[i]);
  Sweep(o, costs).run(command);
  return 0;
}

}  // namespace
}  // namespace coppice::simulate

int main(int argc, char** argv) try { return coppice::simulate::run(argc, argv); } catch (const std::exception& e) {
  std::cerr << "coppice-simulate: " << e.what() << '\n';
  return 1;
}
