// llama-common's parsed parameters: every llama-server flag and LLAMA_ARG_* variable, read by llama-common's own
// parser.
//
// app/ sees flags as plain data (LlamaOption, ServerFlags); only engine/ and chat/ look inside common_params.
// Threading: parse() changes llama-common's process-wide log settings; call it from one thread, before others start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

struct common_params;

namespace coppice::engine {

// One flag that llama-server knows.
struct LlamaOption {
  std::vector<std::string> names;      // "-c", "--ctx-size"
  std::vector<std::string> negations;  // "--no-mmap"; these take no value
  std::string env;                     // "LLAMA_ARG_CTX_SIZE" or empty
  std::string value_hint;              // "N"; empty for a switch
  std::string help;                    // llama.cpp's own words
  int n_values = 0;                    // arguments that follow the name: 0, 1 or 2
  bool sampling = false, speculative = false;
};

// All of them, in llama.cpp's order.
const std::vector<LlamaOption>& llama_options();

// What the layers above need of llama-server's server flags. Owned by nobody; a copy.
struct ServerFlags {
  std::string host;
  std::int32_t port = 0;
  std::int32_t n_parallel = -1;  // -1: not given
  float slot_prompt_similarity = 0;
  std::vector<std::string> api_keys;
  std::vector<std::string> aliases;
  std::int32_t threads_http = -1;  // -1: not given
  std::int32_t sse_ping_interval_s = 30;
  bool endpoint_slots = true;
  bool cache_prompt = true;
  std::int32_t n_predict = -1;
  std::int32_t verbosity = 0;  // 0 output, 1 error, 2 warning (our default), 3 info, 4 trace, 5 debug
  bool has_model = false;      // a file, URL or repository was named
};

class LlamaConfig {
 public:
  // args: argv without the program name; flags that are Coppice's own were taken out before. Load backends first
  // (engine/backends.h), because device flags name their devices.
  //
  // Errors: invalid_request with llama-common's words. Flags that print and exit (--help, --version, --list-devices,
  // --cache-list, --completion-bash) are refused. Warnings about deprecated flags go to stderr.
  // NOTE: a broken llama.cpp configuration file (/etc/llama.cpp/config.ini and the one in the user's configuration
  // folder) still makes llama-common print the reason and exit with status 1: it is read inside its parser and nowhere
  // else.
  static Result<LlamaConfig> parse(const std::vector<std::string>& args);

  LlamaConfig(LlamaConfig&&) noexcept;
  LlamaConfig& operator=(LlamaConfig&&) noexcept;
  ~LlamaConfig();

  ServerFlags server() const;
  void set_model_path(std::string path);  // for the built-in model

  common_params& params() { return *params_; }
  const common_params& params() const { return *params_; }

 private:
  LlamaConfig();
  std::unique_ptr<common_params> params_;
};

}  // namespace coppice::engine
