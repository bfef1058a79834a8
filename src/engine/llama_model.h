// A loaded model with its context: what llama_runner, llama_tokenizer, llama_sampler and chat/ are built from.
//
// LlamaModel owns model, context and adapters for the life of the process. Only engine/ and chat/ look inside.
// Threading: load() and the destructor on one thread; the context belongs to the engine thread; all else is immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "engine/llama_config.h"

struct llama_model;
struct llama_context;
struct llama_vocab;
struct common_params;

namespace coppice::engine {

// Without -c, the context has the model's trained length, but at most this many cells, which all slots share.
inline constexpr TokenPos kDefaultCellsMax = 131072;

struct LoadOptions {
  std::string backend_dir;                 // folder of libggml-*.so; searched before the default places
  std::int32_t n_slots = 4;                // requests that run at a time; 1 .. 256
  std::int32_t n_sequences = 0;            // n_slots .. 256; 0: as many as cost little, see context_sequences()
  std::int32_t n_outputs_max = 0;          // the most logits that one decode() asks for; 0: max(n_slots, 64)
  std::function<bool(float)> on_progress;  // 0.0 .. 1.0 while tensors load, never falling; false aborts. May be empty.
};

class LlamaModel {
 public:
  // Loads backends, model (downloading it first where the flags say so), context (kv_unified)
  // and adapters. Slow. Errors: internal with llama.cpp's reason, invalid_request when the file is missing or no GGUF,
  // cancelled when on_progress said so.
  //
  // Cells: -c N gives N (llama.cpp rounds up to a multiple of 256); -c 0 gives the trained length whatever it costs; no
  // -c gives the trained length, at most kDefaultCellsMax, and less where the memory would not hold it: on GPUs as
  // llama.cpp's --fit decides, on a CPU alone at most half of the RAM that the model leaves.
  static Result<std::unique_ptr<LlamaModel>> load(LlamaConfig config, const LoadOptions& options);
  ~LlamaModel();

  llama_model* model() const;
  llama_context* context() const;
  const llama_vocab* vocab() const;
  const common_params& params() const;  // n_ctx, n_batch, n_ubatch, n_parallel, n_outputs_max are the effective ones

  std::int32_t n_slots() const;          // LoadOptions::n_slots
  std::int32_t n_sequences_max() const;  // LoadOptions::n_sequences, or llama.cpp's limit

  // What to tell people at start-up and in /v1/models and /props.
  struct Summary {
    std::string path, name, architecture, description;  // description: llama_model_desc
    std::uint64_t n_params = 0;
    std::uint64_t file_bytes = 0;  // all tensors
    std::uint64_t kv_bytes = 0;    // all cells (and recurrent states), on every device; 0 when unknown
    std::int32_t n_ctx = 0, n_ctx_train = 0, n_vocab = 0, n_embd = 0, n_threads = 0;
    std::string bos_token, eos_token;  // as text; empty where the vocabulary has none
    std::vector<std::string> devices;
  };
  const Summary& summary() const;

 private:
  struct Impl;
  explicit LlamaModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace coppice::engine
