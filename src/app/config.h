// What `coppice serve` was asked to do: our own settings, and llama.cpp's parameters beside them.
//
// Order of trust for a setting: command line, COPPICE_* variable, LLAMA_ARG_* variable, default.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/llama_config.h"

namespace coppice::app {

inline constexpr std::int32_t kSequencesMax = 256;  // llama.cpp's limit

// When the beginning of a conversation's next prompt is computed in idle time.
enum class IdlePrefillMode : std::uint8_t { off, on, where_needed };

struct Config {
  // Flags that llama-server knows too; from engine::ServerFlags.
  std::string host;
  std::uint16_t port = 0;
  std::int32_t n_slots = 4;
  float slot_prompt_similarity = 0.10F;
  std::vector<std::string> api_keys, aliases;
  std::int32_t sse_ping_interval_s = 30;
  std::int32_t default_n_predict = -1;
  bool default_cache_prompt = true;
  bool endpoint_slots = true;
  std::int32_t llama_verbosity = 2;  // 2: warnings, 4: information, 5: all
  unsigned threads_http = 4;

  // Our own; app/own_flags.cc says what each means.
  bool endpoint_metrics = true;
  bool allow_no_key = false;
  bool exact_continuation = true;
  bool session_inference = true;
  IdlePrefillMode idle_prefill = IdlePrefillMode::where_needed;
  std::size_t queue_limit = 512;
  std::int32_t overtake_limit = 64;
  std::size_t connections_max = 1024;
  std::size_t body_bytes_max = 64U << 20;
  std::size_t stream_buffer_bytes_max = 4U << 20;
  std::size_t turn_memory_bytes_max = 64U << 20;
  std::size_t response_store_bytes_max = 256U << 20;
  std::int32_t prefill_chunk = 0;  // tokens; 0: the model's n_ubatch
  std::int32_t shutdown_grace_s = 3;
  std::int32_t n_sequences = 0;  // KV sequences held at most: slots, parked prefixes, pools; 0: chosen by the model
  std::optional<std::uint64_t> cache_ram_bytes;  // host tier; none: a quarter of the memory, at most 8 GiB
  std::string cache_disk;                        // folder of the disk tier; empty: none
  std::uint64_t cache_disk_bytes_max = std::uint64_t{32} << 30;
  std::uint64_t cache_disk_bytes_per_hour_max = 0;  // 0: no limit
  std::string pool_file;                            // pools to compute at start-up; empty: none
  std::string log_level = "info";
  bool log_level_given = false;

  bool built_in_model = false;  // no model was named
};

// What the command line asks for beside serving.
enum class Action : std::uint8_t { serve, help, help_llama, version, list_devices };

struct Command {
  Action action = Action::serve;
  Config config;
  std::vector<std::string> llama_args;  // for engine::LlamaConfig::parse
  std::vector<std::string> notes;       // about flags that are accepted and have no effect
};

// Splits the arguments after `serve` into ours and llama.cpp's, and judges both and the environment. Pure but for
// reading the environment. `--name=value` means `--name value`. Errors: invalid_request, ready to be shown.
Result<Command> parse_serve(const std::vector<std::string>& args);

// Takes over what llama-common parsed, and checks what only makes sense together. Errors: invalid_request.
Result<void> complete(Config& config, const engine::ServerFlags& flags);

// Whether only this machine can reach the address.
bool is_loopback(const std::string& host);

// The built-in model: share/coppice/coppice-demo.gguf beside or above the program, else the build's. Errors:
// invalid_request, with how to name a model.
Result<std::string> find_built_in_model();

}  // namespace coppice::app
