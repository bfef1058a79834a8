#include "app/config.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <unordered_map>

#include "app/llama_rulings.h"
#include "app/own_flags.h"

namespace coppice::app {
namespace {

constexpr std::int32_t kSlotsDefault = 4;
constexpr std::int32_t kSlotsMax = kSequencesMax;

using Args = std::vector<std::string>;

// How many values follow each of llama-server's flags.
const std::unordered_map<std::string, int>& llama_arity() {
  static const auto arity = [] {
    std::unordered_map<std::string, int> map;
    for (const engine::LlamaOption& option : engine::llama_options()) {
      for (const std::string& name : option.names) map[name] = option.n_values;
      for (const std::string& name : option.negations) map[name] = 0;
    }
    return map;
  }();
  return arity;
}

bool known(const std::string& spelling) {
  return find_own_flag(spelling) != nullptr || llama_arity().contains(spelling);
}

// "--name=value" becomes two arguments; "--some_name" becomes "--some-name", as llama-common reads it.
// Only flags are touched, so this runs before a flag is looked up and never on a value.
void normalize(Args& args, std::size_t i) {
  if (!args[i].starts_with("--")) return;
  const std::size_t equals = args[i].find('=');
  std::string name = args[i].substr(0, equals);
  std::ranges::replace(name, '_', '-');
  if (!known(name)) return;
  if (equals != std::string::npos) {
    args.insert(args.begin() + static_cast<std::ptrdiff_t>(i) + 1, args[i].substr(equals + 1));
  }
  args[i] = std::move(name);
}

// The values after args[i]; i is left on the last of them.
Result<Args> take_values(const Args& args, std::size_t& i, int count) {
  const std::string name = args[i];
  Args values;
  for (; count > 0; --count) {
    if (++i >= args.size()) return invalid(name + " needs a value", name);
    values.push_back(args[i]);
  }
  return values;
}

Result<void> take_own(Command& command, const OwnFlag& flag, const Args& args, std::size_t& i) {
  const std::string name = args[i];
  auto values = take_values(args, i, flag.takes_value() ? 1 : 0);
  if (!values) return std::unexpected(values.error());
  const std::string value = values->empty() ? std::string{} : values->front();
  auto done = flag.apply(command, value, flag.negation.empty() || name != flag.negation);
  if (!done) return invalid(name + ": " + done.error().message, name);
  return {};
}

Result<void> take_llama(Command& command, const Args& args, std::size_t& i) {
  const std::string name = args[i];
  const auto arity = llama_arity().find(name);
  if (arity == llama_arity().end()) {
    const bool stray = !name.starts_with('-');
    return invalid(stray ? "'" + name + "' is not an option; a model is given with -m FILE" : "unknown option: " + name,
                   name);
  }
  auto values = take_values(args, i, arity->second);
  if (!values) return std::unexpected(values.error());
  auto verdict = judge(name, values->empty() ? std::string_view{} : std::string_view(values->front()));
  if (!verdict) return std::unexpected(verdict.error());
  if (!verdict->note.empty()) command.notes.push_back(verdict->note);
  if (verdict->pass_on) {
    command.llama_args.push_back(name);
    command.llama_args.insert(command.llama_args.end(), values->begin(), values->end());
  }
  return {};
}

unsigned http_threads(std::int32_t given) {
  if (given > 0) return static_cast<unsigned>(std::min(given, 256));
  // JSON, templates and tokenizing run there, beside the engine thread and llama.cpp's own.
  return std::clamp(std::thread::hardware_concurrency() / 2, 2U, 16U);
}

}  // namespace

Result<Command> parse_serve(const Args& arguments) {
  Command command;
  Args args = arguments;
  auto notes = judge_environment();
  if (!notes) return std::unexpected(notes.error());
  command.notes = std::move(*notes);
  if (auto done = apply_own_environment(command); !done) return std::unexpected(done.error());
  for (std::size_t i = 0; i < args.size(); ++i) {
    normalize(args, i);
    const OwnFlag* own = find_own_flag(args[i]);
    auto done = own != nullptr ? take_own(command, *own, args, i) : take_llama(command, args, i);
    if (!done) return std::unexpected(done.error());
    // Someone who asks for help gets it, whatever else stands on the line.
    if (command.action != Action::serve) return command;
  }
  return command;
}

Result<void> complete(Config& config, const engine::ServerFlags& flags) {
  if (flags.port < 0 || flags.port > 65535)
    return invalid(fmt::format("--port: {} is not a port", flags.port), "--port");
  if (flags.host.ends_with(".sock")) {
    return invalid("--host: Unix sockets are not served; give an address", "--host");
  }
  config.host = flags.host;
  config.port = static_cast<std::uint16_t>(flags.port);
  config.n_slots = flags.n_parallel < 0 ? kSlotsDefault : flags.n_parallel;
  if (config.n_slots < 1 || config.n_slots > kSlotsMax) {
    return invalid(fmt::format("--parallel: {} is not a number of slots from 1 to {}", config.n_slots, kSlotsMax),
                   "--parallel");
  }
  if (config.n_sequences != 0 && config.n_sequences < config.n_slots) {
    return invalid(fmt::format("--sequences: {} is less than the {} slots, each of which needs one", config.n_sequences,
                               config.n_slots),
                   "--sequences");
  }
  if (!(flags.slot_prompt_similarity >= 0 && flags.slot_prompt_similarity <= 1)) {
    return invalid("--slot-prompt-similarity must be between 0 and 1", "--slot-prompt-similarity");
  }
  config.slot_prompt_similarity = flags.slot_prompt_similarity;
  config.api_keys = flags.api_keys;
  config.aliases = flags.aliases;
  config.sse_ping_interval_s = flags.sse_ping_interval_s;
  config.default_n_predict = std::max(flags.n_predict, -1);
  config.default_cache_prompt = flags.cache_prompt;
  config.endpoint_slots = flags.endpoint_slots;
  config.llama_verbosity = flags.verbosity;
  config.threads_http = http_threads(flags.threads_http);
  config.built_in_model = !flags.has_model;
  if (flags.verbosity >= 4 && !config.log_level_given) config.log_level = "debug";
  if (!is_loopback(config.host) && config.api_keys.empty() && !config.allow_no_key) {
    return invalid(
        fmt::format("--host {} lets other machines in, and no API key is set. Give one with --api-key KEY, or "
                    "--allow-no-key if anyone who can reach the port may use it.",
                    config.host),
        "--host");
  }
  return {};
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

Result<std::string> find_built_in_model() {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> places;
  if (const fs::path program = fs::read_symlink("/proc/self/exe", error); !error) {
    places.push_back(program.parent_path() / "share/coppice/coppice-demo.gguf");
    places.push_back(program.parent_path().parent_path() / "share/coppice/coppice-demo.gguf");
  }
  places.emplace_back(COPPICE_DEMO_MODEL);
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place, error)) return place.string();
  }
  return invalid(
      "no model was given and the built-in one is not installed; name one with -m FILE.gguf or -hf USER/MODEL",
      "--model");
}

}  // namespace coppice::app
