#include "app/own_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "app/sizes.h"

namespace coppice::app {
namespace {

template <class T>
Result<void> store_int(T& to, std::string_view text, std::int64_t min, std::int64_t max) {
  auto value = parse_int(text, min, max);
  if (!value) return std::unexpected(value.error());
  to = static_cast<T>(*value);
  return {};
}

Result<void> store_size(std::size_t& to, std::string_view text, std::uint64_t min) {
  auto value = parse_size(text);
  if (!value) return std::unexpected(value.error());
  if (*value < min) return invalid(fmt::format("{} is too small; the least is {}", text, human_bytes(min)));
  to = *value;
  return {};
}

template <Action action>
Result<void> set_action(Command& command, std::string_view, bool) {
  command.action = action;
  return {};
}

Result<void> set_log_level(Command& command, std::string_view text, bool) {
  constexpr std::string_view levels[] = {"debug", "info", "warn", "error"};
  if (std::ranges::find(levels, text) == std::end(levels)) {
    return invalid(fmt::format("'{}' is not one of debug, info, warn, error", text));
  }
  command.config.log_level = text;
  command.config.log_level_given = true;
  return {};
}

// llama-server counts it in MiB, so a small number without a unit is most likely one of its.
Result<void> set_cache_ram(Command& command, std::string_view text, bool) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20U;
  std::uint64_t& bytes = command.config.cache_ram_bytes.emplace();
  if (auto stored = store_size(bytes, text, 0); !stored) return stored;
  if (bytes == 0 || bytes >= kLeast) return {};
  return invalid(fmt::format("'{0}' is {0} bytes, too few for any KV; with a unit it is {0}MiB", text));
}

Result<void> set_idle_prefill(Command& command, std::string_view text, bool) {
  constexpr std::pair<std::string_view, IdlePrefillMode> modes[] = {
      {"on", IdlePrefillMode::on}, {"off", IdlePrefillMode::off}, {"auto", IdlePrefillMode::where_needed}};
  const auto* found = std::ranges::find(modes, text, &std::pair<std::string_view, IdlePrefillMode>::first);
  if (found == std::end(modes)) return invalid(fmt::format("'{}' is not one of on, off, auto", text));
  command.config.idle_prefill = found->second;
  return {};
}

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

const std::vector<OwnFlag> kOwnFlags = {
    {.group = "Serving",
     .names = {"--allow-no-key"},
     .env = "COPPICE_ALLOW_NO_KEY",
     .help = "Let other machines use the server without an API key. Needed for a --host that is not this "
             "machine's loopback address when no --api-key is given.",
     .apply = [](Command& to, std::string_view, bool on) -> Result<void> {
       to.config.allow_no_key = on;
       return {};
     }},
    {.group = "Serving",
     .names = {"--queue-limit"},
     .value_hint = "N",
     .env = "COPPICE_QUEUE_LIMIT",
     .default_text = "512",
     .help = "Requests that may wait for a slot. One more is answered 503 with Retry-After.",
     .apply = [](Command& to, std::string_view v, bool) { return store_int(to.config.queue_limit, v, 0, 1'000'000); }},
    {.group = "Serving",
     .names = {"--overtake-limit"},
     .value_hint = "N",
     .env = "COPPICE_OVERTAKE_LIMIT",
     .default_text = "64",
     .help = "Of the requests that wait, the one with the fewest prompt tokens to compute runs first, but none is "
             "overtaken by more than N later ones. 0: in order of arrival.",
     .apply = [](Command& to, std::string_view v,
                 bool) { return store_int(to.config.overtake_limit, v, 0, 1'000'000); }},
    {.group = "Serving",
     .names = {"--prefill-chunk"},
     .value_hint = "N",
     .env = "COPPICE_PREFILL_CHUNK",
     .default_text = "-ub",
     .help = "Tokens computed in one step while answers run: theirs first, then as much of waiting prompts as "
             "fits. Smaller: answers stutter less while a long prompt is read; larger: prompts are read "
             "faster.",
     .apply = [](Command& to, std::string_view v,
                 bool) { return store_int(to.config.prefill_chunk, v, 1, kInt32Max); }},
    {.group = "Serving",
     .names = {"--pool"},
     .value_hint = "FILE",
     .env = "COPPICE_POOL",
     .help = "Prompt beginnings to compute at start-up and keep for as long as the server runs: what many requests "
             "begin with, like an agent's system prompt and tools. FILE is JSON, one object as POST /v1/pools takes "
             "it or a list of them: {\"name\": \"base\", \"messages\": [...], \"tools\": [...]}.",
     .apply = [](Command& to, std::string_view v, bool) -> Result<void> {
       to.config.pool_file = v;
       return {};
     }},
    {.group = "Serving",
     .names = {"--shutdown-grace"},
     .value_hint = "SECONDS",
     .env = "COPPICE_SHUTDOWN_GRACE",
     .default_text = "3",
     .help = "How long running answers may go on after SIGINT or SIGTERM before they are ended.",
     .apply = [](Command& to, std::string_view v,
                 bool) { return store_int(to.config.shutdown_grace_s, v, 0, 86'400); }},
    {.group = "Serving",
     .names = {"--metrics"},
     .negation = "--no-metrics",
     .env = "COPPICE_METRICS",
     .default_text = "on",
     .help = "Serve Prometheus metrics at /metrics.",
     .apply = [](Command& to, std::string_view, bool on) -> Result<void> {
       to.config.endpoint_metrics = on;
       return {};
     }},

    {.group = "Serving",
     .names = {"--session-inference"},
     .negation = "--no-session-inference",
     .env = "COPPICE_SESSION_INFERENCE",
     .default_text = "on",
     .help = "Find a request's session in its headers when the body names none. Off: only session_id in the body does.",
     .apply = [](Command& to, std::string_view, bool on) -> Result<void> {
       to.config.session_inference = on;
       return {};
     }},

    {.group = "Serving",
     .names = {"--exact-continuation"},
     .negation = "--no-exact-continuation",
     .env = "COPPICE_EXACT_CONTINUATION",
     .default_text = "on",
     .help = "When a client sends an answer of this server back, however it writes it down, go on from the tokens that "
             "were "
             "generated. Off: the prompt is what the template and the tokenizer make of it.",
     .apply = [](Command& to, std::string_view, bool on) -> Result<void> {
       to.config.exact_continuation = on;
       return {};
     }},

    {.group = "Serving",
     .names = {"--idle-prefill"},
     .value_hint = "on|off|auto",
     .env = "COPPICE_IDLE_PREFILL",
     .default_text = "auto",
     .help =
         "When an answer is given and nothing else is to be done, compute what the conversation's next prompt will "
         "begin with, whatever the user or the tools say. auto: where the chat template renders earlier answers "
         "anew when the conversation goes on, which 'coppice template' shows. A request with idle_prefill: false is "
         "left out.",
     .apply = set_idle_prefill},

    {.group = "Limits",
     .names = {"--body-limit"},
     .value_hint = "SIZE",
     .env = "COPPICE_BODY_LIMIT",
     .default_text = "64MiB",
     .help = "The largest request body. Beyond it the answer is 413.",
     .apply = [](Command& to, std::string_view v, bool) { return store_size(to.config.body_bytes_max, v, 1024); }},
    {.group = "Limits",
     .names = {"--stream-buffer"},
     .value_hint = "SIZE",
     .env = "COPPICE_STREAM_BUFFER",
     .default_text = "4MiB",
     .help = "Unsent bytes kept for a client that reads slowly. Beyond it the client is disconnected.",
     .apply = [](Command& to, std::string_view v,
                 bool) { return store_size(to.config.stream_buffer_bytes_max, v, 4096); }},
    {.group = "Limits",
     .names = {"--connections-max"},
     .value_hint = "N",
     .env = "COPPICE_CONNECTIONS_MAX",
     .default_text = "1024",
     .help = "Connections served at once.",
     .apply = [](Command& to, std::string_view v,
                 bool) { return store_int(to.config.connections_max, v, 1, 1'000'000); }},
    {.group = "Limits",
     .names = {"--turn-memory"},
     .value_hint = "SIZE",
     .env = "COPPICE_TURN_MEMORY",
     .default_text = "64MiB",
     .help = "Answers of this server that are remembered with their exact tokens, to go on from them and to know their "
             "ids when they come back. Those not used for longest go first. 0: none.",
     .apply = [](Command& to, std::string_view v, bool) { return store_size(to.config.turn_memory_bytes_max, v, 0); }},
    {.group = "Limits",
     .names = {"--response-store"},
     .value_hint = "SIZE",
     .env = "COPPICE_RESPONSE_STORE",
     .default_text = "256MiB",
     .help = "Responses of /v1/responses that are kept to be continued by their id. Those not used for longest go "
             "first. 0: none.",
     .apply = [](Command& to, std::string_view v,
                 bool) { return store_size(to.config.response_store_bytes_max, v, 0); }},
    {.group = "Limits",
     .names = {"--sequences"},
     .value_hint = "N",
     .env = "COPPICE_SEQUENCES",
     .default_text = "0",
     .help = "How many prompts' KV is held at most: one for each slot, the others for conversations that are not "
             "running and for pools. More keep more conversations warm at once. 0: as the model allows, up to 256.",
     .apply = [](Command& to, std::string_view v,
                 bool) { return store_int(to.config.n_sequences, v, 0, kSequencesMax); }},
    {.group = "Cache",
     .names = {"-cram", "--cache-ram"},
     .value_hint = "SIZE",
     .env = "COPPICE_CACHE_RAM",
     .default_text = "1/4 of RAM, at most 8GiB",
     .help = "KV kept in RAM beside the device, so that what was evicted comes back without being computed again. 0: "
             "none.",
     .apply = set_cache_ram},
    {.group = "Cache",
     .names = {"--cache-disk"},
     .value_hint = "DIR",
     .env = "COPPICE_CACHE_DISK",
     .default_text = "none",
     .help = "A folder for KV that outlives the server: sessions and pools of before are warm after a restart. One "
             "server at a time. Needs --cache-ram to be more than 0.",
     .apply = [](Command& to, std::string_view v, bool) -> Result<void> {
       to.config.cache_disk = v;
       return {};
     }},
    {.group = "Cache",
     .names = {"--cache-disk-size"},
     .value_hint = "SIZE",
     .env = "COPPICE_CACHE_DISK_SIZE",
     .default_text = "32GiB",
     .help = "The most that the folder may hold; what is worth least goes first.",
     .apply = [](Command& to, std::string_view v, bool) { return store_size(to.config.cache_disk_bytes_max, v, 0); }},
    {.group = "Cache",
     .names = {"--cache-disk-rate"},
     .value_hint = "SIZE",
     .env = "COPPICE_CACHE_DISK_RATE",
     .default_text = "0",
     .help = "The most that is written in an hour, to spare the disk. 0: no limit.",
     .apply = [](Command& to, std::string_view v,
                 bool) { return store_size(to.config.cache_disk_bytes_per_hour_max, v, 0); }},

    {.group = "Information",
     .names = {"--log-level"},
     .value_hint = "LEVEL",
     .env = "COPPICE_LOG_LEVEL",
     .default_text = "info",
     .help = "debug, info, warn or error; the log goes to stderr. llama.cpp's own messages appear from "
             "warnings up; -v shows all of them.",
     .apply = set_log_level},
    {.group = "Information",
     .names = {"--list-devices"},
     .help = "Print what this machine can compute on, and exit.",
     .apply = set_action<Action::list_devices>},
    {.group = "Information",
     .names = {"--help-llama"},
     .help = "Print llama.cpp's options that work here, and exit.",
     .apply = set_action<Action::help_llama>},
    {.group = "Information",
     .names = {"--version"},
     .help = "Print the version, and exit.",
     .apply = set_action<Action::version>},
    {.group = "Information",
     .names = {"-h", "--help", "--usage"},
     .help = "Print this text, and exit.",
     .apply = set_action<Action::help>},
};

}  // namespace

std::span<const OwnFlag> own_flags() { return kOwnFlags; }

const OwnFlag* find_own_flag(std::string_view spelling) {
  const auto found = std::ranges::find_if(kOwnFlags, [&](const OwnFlag& flag) {
    return std::ranges::find(flag.names, spelling) != flag.names.end() ||
           (!flag.negation.empty() && flag.negation == spelling);
  });
  return found == kOwnFlags.end() ? nullptr : &*found;
}

Result<void> apply_own_environment(Command& command) {
  for (const OwnFlag& flag : kOwnFlags) {
    if (flag.env.empty()) continue;
    const std::string name(flag.env);
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) continue;
    bool on = true;
    if (!flag.takes_value()) {
      const std::string_view text = value;
      on = text == "1" || text == "true" || text == "on";
      if (!on && text != "0" && text != "false" && text != "off") {
        return invalid(name + ": '" + value + "' is neither 1 nor 0", name);
      }
    }
    if (auto done = flag.apply(command, value, on); !done) return invalid(name + ": " + done.error().message, name);
  }
  return {};
}

}  // namespace coppice::app
