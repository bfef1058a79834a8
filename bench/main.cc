// coppice-bench: measures servers of OpenAI's API over HTTP, and makes reports of what was measured. It knows nothing
// of the server's code: what it measures, any client can.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <thread>

#include "peers/cleanup.h"
#include "report/html.h"
#include "run.h"

namespace {

using namespace coppice::bench;  // NOLINT(google-build-using-namespace): this is the benchmark's own program

struct ReportOptions {
  std::vector<std::string> files;
  std::string html, markdown;
};

int fail(const std::string& message) {
  std::cerr << "coppice-bench: " << message << "\n";
  return EXIT_FAILURE;
}

Status write_file(const std::string& name, const std::string& text) {
  if (name.empty()) return {};
  std::ofstream out(name, std::ios::binary);
  out << text;
  return out.flush() ? Status{} : std::unexpected("cannot write " + name);
}

int report(const ReportOptions& options) {
  Results results;
  for (const std::string& name : options.files) {
    std::ifstream in(name, std::ios::binary);
    if (!in) return fail("cannot read " + name);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    if (const Status s = read_lines(text, results); !s) return fail(name + ": " + s.error());
  }
  if (const Status s = write_file(options.html, html_report(results)); !s) return fail(s.error());
  if (options.markdown == "-") {
    std::cout << markdown_report(results);
  } else if (const Status s = write_file(options.markdown, markdown_report(results)); !s) {
    return fail(s.error());
  }
  return EXIT_SUCCESS;
}

std::string command_line(int argc, char** argv) {
  std::string all = "coppice-bench";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    all += word.find(' ') == std::string::npos ? " " + word : " '" + word + "'";
  }
  return all;
}

// "Processor, 24 GiB, Linux 6.1.0"
std::string machine_text() {
  std::string processor = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name") || line.find(": ") == std::string::npos) continue;
    processor = line.substr(line.find(": ") + 2);
    break;
  }
  const double bytes = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  utsname system{};
  ::uname(&system);
  return fmt::format("{}, {:.0f} GiB, {} {}", processor, bytes / (1 << 30), system.sysname, system.release);
}

class RunCommand {
 public:
  explicit RunCommand(CLI::App& app) {
    command_ = app.add_subcommand("run", "measure servers");
    const std::map<std::string, Scale> scales = {
        {"quick", Scale::quick}, {"full", Scale::full}, {"large", Scale::large}};
    command_->add_option("--scenario", options_.scenarios, "which, separated by commas (default: all)")
        ->delimiter(',')
        ->check(CLI::IsMember(scenario_names()));
    command_->add_option("--spawn", spawn_,
                         "NAME=COMMAND: a server that is started anew for each episode; {port} {model} "
                         "{cells} {slots} {threads} {disk} stand for what it has to use");
    command_->add_option("--peer", peers_, "NAME=URL: a server that runs already");
    command_->add_option("--model", model_, "NAME=FILE: the model, and how reports call it")->required();
    command_->add_option("--floor", options_.floor, "the program coppice-floor");
    command_->add_option("--scale", options_.scenario.scale, "quick, full, large (for a large model: few tokens)")
        ->transform(CLI::CheckedTransformer(scales));
    command_->add_option("--repeats", options_.repeats, "how often each measurement is made")
        ->check(CLI::Range(1, 1000));
    command_->add_option("--threads", options_.threads, "{threads}, and the floor's")->check(CLI::Range(1, 1024));
    command_->add_option("--seed", options_.seed, "other prompts (default: 1, or with --peer one of the moment)");
    command_->add_option("--traces", options_.scenario.traces, "folder of replay's traces")
        ->default_val(COPPICE_BENCH_TRACES);
    command_->add_option("--reading", options_.scenario.reading_s, "seconds that user-turn's user reads an answer")
        ->check(CLI::Range(0.0, 3600.0));
    command_->add_option("--out", options_.out, "file to which JSON lines are appended");
    command_->add_option("--logs", options_.logs, "folder for the servers' logs when a measurement failed");
    command_->add_option("--budget", options_.budget_s,
                         "seconds after which no further repeat is begun; the report says what was left out");
    command_->add_option("--later", options_.later_s, "seconds that other runs need after this one, for the time left");
    command_->add_option("--part", options_.part, "which of several runs this is, for the progress bar");
    command_->add_option("--html", html_, "file for the report");
    command_->add_option("--commit", options_.facts.commit, "what was measured, for the report");
    command_->add_option("--require", options_.require,
                         "NAME: fail unless this server computes no more tokens than it has to");
  }

  bool chosen() const { return command_->parsed(); }

  int run(const std::string& command) {
    const auto model = parse_named(model_);
    if (!model) return fail(model.error());
    options_.model = *model;
    for (auto [texts, all] : {std::pair(&spawn_, &options_.spawn), std::pair(&peers_, &options_.peers)}) {
      for (const std::string& text : *texts) {
        const auto named = parse_named(text);
        if (!named) return fail(named.error());
        all->push_back(*named);
      }
    }
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    // A server that runs may have seen the prompts of an earlier run.
    if (!peers_.empty() && command_->count("--seed") == 0)
      options_.seed = static_cast<std::uint64_t>(now.time_since_epoch().count());
    if (options_.scenarios.empty()) options_.scenarios = scenario_names();
    options_.facts.time = fmt::format("{:%Y-%m-%d %H:%M:%S}", now);
    options_.facts.command = command;
    options_.facts.machine = machine_text();
    options_.facts.cores = std::thread::hardware_concurrency();
    const Result<RunEnd> end = coppice::bench::run(options_);
    if (!end) return fail(end.error());
    const Status s = html_.empty() ? Status{} : write_file(html_, html_report(end->results));
    if (!s) return fail(s.error());
    return end->failure.empty() ? EXIT_SUCCESS : fail(end->failure);
  }

 private:
  CLI::App* command_;
  RunOptions options_;
  std::vector<std::string> spawn_, peers_;
  std::string model_, html_;
};

}  // namespace

int main(int argc, char** argv) try {
  clean_up_on_signals();
  ::signal(SIGPIPE, SIG_IGN);  // a server or program that ended is an error, not the end of this one
  CLI::App app("Measures servers of OpenAI's API over HTTP.");
  app.require_subcommand(1);
  RunCommand run_command(app);
  CLI::App* report_command = app.add_subcommand("report", "make reports of JSON lines");
  ReportOptions report_options;
  report_command->add_option("files", report_options.files, "what --out wrote")->required();
  report_command->add_option("--html", report_options.html, "file for the page");
  report_command
      ->add_option("--markdown", report_options.markdown,
                   "file for what docs/benchmarks.md shows; without a name, or -, standard output")
      ->expected(0, 1)
      ->default_str("-");
  CLI11_PARSE(app, argc, argv);
  return run_command.chosen() ? run_command.run(command_line(argc, argv)) : report(report_options);
} catch (const std::exception& e) {
  return fail(e.what());
}
