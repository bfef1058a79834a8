// What the handlers need, by reference; app/ wires it. Everything here is safe to use from any thread.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "chat/chat.h"
#include "engine/sampler.h"
#include "engine/tokenizer.h"
#include "obs/metrics.h"
#include "sched/engine.h"
#include "session/turn_memory.h"

namespace coppice::api {

// What /v1/models and /props say of the model.
struct ModelFacts {
  std::string id;  // the name clients use; --alias or the file name
  std::string path;
  std::vector<std::string> aliases;
  std::string architecture, description, build;  // build: "coppice 0.1.0 (llama.cpp v0.4.0)"
  std::uint64_t n_params = 0, file_bytes = 0;
  std::int32_t n_ctx = 0;  // the most tokens (prompt + answer) that one request may have: the KV cells
  std::int32_t n_ctx_train = 0, n_vocab = 0, n_embd = 0, n_slots = 0;
  std::string bos_token, eos_token;
  std::int64_t created_unix_s = 0;
};

struct Limits {
  std::int32_t n_completions_max = 16;  // "n"
  std::int32_t n_probs_max = 100;       // "n_probs", "top_logprobs"
  std::int32_t stop_words_max = 64;     // and at most 1 KiB each
  std::size_t session_key_bytes_max = 256;
  std::size_t pool_name_bytes_max = 128;
  std::size_t cache_salt_bytes_max = 1024;
  std::size_t stored_responses_max = 4096;  // of /v1/responses with "store"; the ones not used for longest go first
  std::size_t stored_responses_bytes_max = std::size_t{256} << 20U;
  std::int32_t prompts_max = 16;           // prompts in one /v1/completions request
  std::size_t turn_digests_max = 1 << 18;  // of earlier requests, to say what has changed since; 40 bytes each
  std::size_t output_rules_max = 64;       // grammars and parsers of the last kinds of conversations
  std::size_t mark_positions_max = 4096;   // of cache marks, to know them again; some 150 bytes each
  std::size_t next_turns_max = 16;         // turns that wait for their next prompt's beginning to be found
  std::size_t next_turns_tokens_max = std::size_t{2} << 20U;  // of them all
  std::int32_t sse_ping_interval_s = 30;                      // comment lines while a stream is silent; <= 0: none
};

// After which answers the next prompt's beginning is computed in idle time (api/next_turns.h).
struct IdlePrefill {
  bool allowed = false;  // false: never, whatever a request says
  // Unless the request says so:
  bool after_calls = false;
  bool after_answers = false;
  TokenPos tokens_min = 16;  // fewer that are missing cost the next turn nothing: they are part of its first step
};

struct Services {
  const engine::Tokenizer& tokenizer;
  const engine::SamplerFactory& samplers;
  const chat::Templates& templates;
  sched::Engine& engine;
  obs::Metrics& metrics;
  ModelFacts model;
  Limits limits;
  std::vector<std::string> api_keys;  // empty: none needed
  std::string namespace_secret;       // see Keyring; empty: a new one
  std::int32_t default_n_predict = -1;
  bool default_cache_prompt = true;
  bool endpoint_slots = true, endpoint_metrics = true;
  bool session_inference = true;  // false: only the body's session_id names a session
  session::TurnMemory* turns =
      nullptr;                     // what was generated, for exact continuation and minted ids; null: nothing is kept
  bool exact_continuation = true;  // false: turns only lead ids back to their sessions
  IdlePrefill idle_prefill;
  std::function<std::int64_t()> unix_time_s = [] { return std::int64_t{std::time(nullptr)}; };  // for "created"
};

}  // namespace coppice::api
