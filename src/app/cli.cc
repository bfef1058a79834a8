#include "app/cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <utility>

#include "app/cache_command.h"
#include "app/config.h"
#include "app/help.h"
#include "app/server.h"
#include "app/signals.h"
#include "app/template_command.h"
#include "engine/backends.h"
#include "engine/llama_log.h"
#include "obs/log.h"
#include "tier/disk_index.h"

namespace coppice::app {
namespace {

constexpr int kUsage = 2;

int print(const std::string& text) {
  std::cout << text << std::flush;
  return 0;
}

int wrong_usage(const std::string& message, std::string_view help) {
  fmt::print(stderr, "coppice: {}\nSee: {}\n", message, help);
  return kUsage;
}

int list_devices() {
  if (auto loaded = engine::load_backends(COPPICE_BACKEND_DIR); !loaded) {
    fmt::print(stderr, "coppice: {}\n", loaded.error().message);
    return 1;
  }
  std::string text;
  for (const std::string& device : engine::device_names()) text += device + '\n';
  return print(text);
}

int serve(Command command) {
  // First of all, while this is the only thread: every later thread inherits the blocked signals.
  Signals signals;
  for (const std::string& note : command.notes) fmt::print(stderr, "note: {}\n", note);
  // Device flags name devices, which only exist once their backends are loaded.
  if (auto loaded = engine::load_backends(COPPICE_BACKEND_DIR); !loaded) {
    fmt::print(stderr, "coppice: {}\n", loaded.error().message);
    return 1;
  }
  constexpr std::string_view help = "coppice serve --help";
  auto llama = engine::LlamaConfig::parse(command.llama_args);
  if (!llama) return wrong_usage(llama.error().message, "coppice serve --help-llama");
  if (auto done = complete(command.config, llama->server()); !done) return wrong_usage(done.error().message, help);
  if (command.config.built_in_model) {
    auto path = find_built_in_model();
    if (!path) return wrong_usage(path.error().message, help);
    llama->set_model_path(*path);
  }
  return run_server(command.config, std::move(*llama), signals);
}

int serve_command(const std::vector<std::string>& args) {
  auto command = parse_serve(args);
  if (!command) return wrong_usage(command.error().message, "coppice serve --help");
  switch (command->action) {
    case Action::help: return print(serve_help());
    case Action::help_llama: return print(llama_help());
    case Action::version: return print(version_text());
    case Action::list_devices: return list_devices();
    case Action::serve: break;
  }
  return serve(std::move(*command));
}

int cache_command(const std::vector<std::string>& args) {
  obs::init_log("warn");
  const SteadyClock clock;
  return run_cache(args, {.out = std::cout,
                          .err = std::cerr,
                          .terminal = ::isatty(STDERR_FILENO) == 1,
                          .clock = clock,
                          .now_us = tier::system_us(),
                          .files = tier::system_files()});
}

int template_command(const std::vector<std::string>& args) {
  // What the library says of its attempts is of no use here.
  engine::set_log_sink([](engine::LogLevel, std::string_view) {});
  engine::quiet_common_log();
  return run_template(args, std::cout, std::cerr);
}

}  // namespace

int run(const std::vector<std::string>& args) {
  const std::string command = args.empty() ? "help" : args.front();
  if (command == "serve") return serve_command({args.begin() + 1, args.end()});
  if (command == "template") return template_command({args.begin() + 1, args.end()});
  if (command == "cache") return cache_command({args.begin() + 1, args.end()});
  if (command == "help" || command == "--help" || command == "-h") return print(program_help());
  if (command == "version" || command == "--version") return print(version_text());
  if (command.starts_with('-'))
    return wrong_usage("'" + command + "' comes after a command: coppice serve " + command, "coppice --help");
  return wrong_usage("there is no command '" + command + "'", "coppice --help");
}

}  // namespace coppice::app
