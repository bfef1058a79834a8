#include "engine/llama_model.h"

#include <llama.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <utility>

#include "arg.h"
#include "common.h"
#include "engine/backends.h"
#include "engine/llama_log.h"
#include "engine/llama_memory.h"
#include "log.h"

namespace coppice::engine {
namespace {

constexpr std::int32_t kOutputsDefault = 64;

// llama.cpp reports progress again for each file or device of a model; people want a number that does not fall.
struct Progress {
  const std::function<bool(float)>& report;
  float highest = 0;
  bool aborted = false;

  static bool on_llama(float value, void* self) { return static_cast<Progress*>(self)->step(value); }
  bool step(float value) {
    highest = std::max(highest, std::clamp(value, 0.0F, 1.0F));
    if (report && !report(highest)) aborted = true;
    return !aborted;
  }
};

Result<void> check_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return invalid("no such model file: " + path, "--model");
  if (std::filesystem::is_directory(path, error))
    return invalid("the model is a folder, not a file: " + path, "--model");
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  if (!file.read(magic, sizeof magic)) return invalid("cannot read the model file: " + path, "--model");
  if (std::memcmp(magic, "GGUF", sizeof magic) != 0) return invalid("not a GGUF file: " + path, "--model");
  return {};
}

// -hf, -mu and the like: find the file in the cache or download it.
Result<void> fetch_model(common_params& params) {
  const common_params_model& model = params.model;
  const bool remote = !model.hf_repo.empty() || !model.url.empty() || !model.docker_repo.empty();
  if (!remote && model.path.empty()) return invalid("no model was given", "--model");
  if (remote) {
    try {
      common_models_handler handler = common_models_handler_init(params, LLAMA_EXAMPLE_SERVER);
      if (common_models_handler_is_preset_repo(handler)) {
        return invalid("this repository holds presets for several models, not a model", "--hf-repo");
      }
      common_models_handler_apply(handler, params);
    } catch (const std::exception& e) {
      return fail(ErrorKind::internal, "cannot fetch the model '" + model.get_name() + "': " + e.what(), "--model");
    }
  }
  return check_file(params.model.path);
}

// A broken control vector would otherwise be skipped in silence.
Result<void> check_control_vectors(const common_params& params) {
  if (params.control_vectors.empty()) return {};
  if (common_control_vector_load(params.control_vectors).n_embd == -1) {
    return invalid("cannot load the control vectors", "--control-vector");
  }
  return {};
}

// What Coppice decides itself, whatever flags, variables or configuration files say.
void force_our_settings(common_params& params, const LoadOptions& options) {
  params.n_parallel = options.n_slots;
  params.kv_unified = true;  // one set of cells, so that a prefix can be shared by metadata alone
  params.cont_batching = true;
  params.ctx_shift = false;  // shifting would change cells that other sequences see
  params.n_batch = std::max(params.n_batch, 1);
  params.n_ubatch = std::clamp(params.n_ubatch, 1, params.n_batch);
  const std::int32_t outputs = options.n_outputs_max > 0 ? options.n_outputs_max : kOutputsDefault;
  // A batch holds at least one token of every slot, each of which may want logits.
  params.n_batch = std::max(params.n_batch, options.n_slots);
  params.n_outputs_max = std::min(std::max(outputs, options.n_slots), params.n_batch);
  params.n_outputs_max_per_seq = params.n_outputs_max;
  params.embedding = false;
  params.pooling_type = LLAMA_POOLING_TYPE_UNSPECIFIED;
  params.no_mmproj = true;
  params.mmproj = {};
  params.speculative = {};
  params.sampling.backend_sampling = false;  // samplers belong to requests, not to the context
  params.lora_init_without_apply = false;
}

bool cells_were_given(const common_params& params) {
  // llama-common marks an explicit "-c 0" by raising the least context of --fit.
  return params.n_ctx != 0 || static_cast<std::uint32_t>(params.fit_params_min_ctx) == UINT32_MAX;
}

// Settles params.n_ctx; returns the bytes of all cells, 0 when unknown.
std::uint64_t settle_cells(common_params& params) {
  auto need = measure_memory(params);
  if (!need) return 0;
  if (need->on_cpu_alone) params.fit_params = false;  // nothing to place; saves reading the metadata once more
  if (!cells_were_given(params)) {
    params.n_ctx = default_cells(params, *need);
    if (params.n_ctx != need->n_ctx_train) need = measure_memory(params);
  }
  return need ? need->kv_bytes : 0;
}

std::string meta(const llama_model* model, const char* key) {
  char text[512];
  const int size = llama_model_meta_val_str(model, key, text, sizeof text);
  return size < 0 ? std::string{}
                  : std::string(text, std::min<std::size_t>(static_cast<std::size_t>(size), sizeof text - 1));
}

std::string token_text(const llama_context* context, llama_token token) {
  return token == LLAMA_TOKEN_NULL ? std::string{} : common_token_to_piece(context, token, true);
}

LlamaModel::Summary summarize(const llama_model* model, const llama_context* context, const common_params& params) {
  LlamaModel::Summary to;
  to.path = params.model.path;
  to.name = meta(model, "general.name");
  if (to.name.empty()) to.name = std::filesystem::path(to.path).stem().string();
  to.architecture = meta(model, "general.architecture");
  char text[256];
  if (llama_model_desc(model, text, sizeof text) > 0) to.description = text;
  to.n_params = llama_model_n_params(model);
  to.file_bytes = llama_model_size(model);
  to.n_ctx = static_cast<std::int32_t>(llama_n_ctx(context));
  to.n_ctx_train = llama_model_n_ctx_train(model);
  to.n_embd = llama_model_n_embd(model);
  to.n_threads = params.cpuparams.n_threads;
  const llama_vocab* vocab = llama_model_get_vocab(model);
  to.n_vocab = llama_vocab_n_tokens(vocab);
  to.bos_token = token_text(context, llama_vocab_bos(vocab));
  to.eos_token = token_text(context, llama_vocab_eos(vocab));
  to.devices = device_names();
  return to;
}

}  // namespace

struct LlamaModel::Impl {
  explicit Impl(LlamaConfig c) : config(std::move(c)) {}
  LlamaConfig config;  // the context borrows from its parameters, so it outlives `loaded`
  common_init_result_ptr loaded;
  std::int32_t n_slots = 0, n_sequences_max = 0;
  Summary summary;
};

LlamaModel::LlamaModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LlamaModel::~LlamaModel() = default;

Result<std::unique_ptr<LlamaModel>> LlamaModel::load(LlamaConfig config, const LoadOptions& options) {
  const auto n_seq_max = static_cast<std::int32_t>(llama_max_parallel_sequences());
  if (options.n_slots < 1 || options.n_slots > n_seq_max) {
    return invalid("the number of slots must be between 1 and " + std::to_string(n_seq_max), "--parallel");
  }
  if (options.n_sequences != 0 && (options.n_sequences < options.n_slots || options.n_sequences > n_seq_max)) {
    return invalid("the number of sequences must be between the number of slots (" + std::to_string(options.n_slots) +
                       ") and " + std::to_string(n_seq_max),
                   "--sequences");
  }
  if (auto done = load_backends(options.backend_dir); !done) return std::unexpected(done.error());
  auto impl = std::make_unique<Impl>(std::move(config));
  common_params& params = impl->config.params();
  force_our_settings(params, options);
  if (auto done = fetch_model(params); !done) return std::unexpected(done.error());
  if (auto done = check_control_vectors(params); !done) return std::unexpected(done.error());
  llama_numa_init(params.numa);

  ErrorCapture errors;
  Progress progress{options.on_progress};
  auto failure = [&](std::string what) -> std::unexpected<Error> {
    if (progress.aborted) return fail(ErrorKind::cancelled, "loading the model was interrupted");
    if (std::string reason = errors.first(); !reason.empty()) what += ": " + reason;
    return fail(ErrorKind::internal, std::move(what));
  };
  try {
    const std::uint64_t kv_bytes = settle_cells(params);
    const bool chosen = options.n_sequences > 0;
    impl->n_slots = options.n_slots;
    impl->n_sequences_max = chosen ? options.n_sequences : n_seq_max;
    const std::int32_t wanted = context_sequences(params, options.n_slots);
    set_sequences(params, chosen ? std::min(wanted, options.n_sequences + 1) : wanted);
    if (!progress.step(0)) return failure("");
    params.load_progress_callback = Progress::on_llama;
    params.load_progress_callback_user_data = &progress;
    impl->loaded = common_init_from_params(params);
    params.load_progress_callback = nullptr;  // `progress` ends here
    params.load_progress_callback_user_data = nullptr;
    if (impl->loaded->model() == nullptr) return failure("cannot load the model " + params.model.path);
    if (impl->loaded->context() == nullptr) return failure("cannot make a context for " + params.model.path);
    if (impl->loaded->sampler(0) == nullptr) {
      return invalid("the default sampling options do not work; is the grammar or JSON schema valid?", "--grammar");
    }
    params.n_ctx = static_cast<std::int32_t>(llama_n_ctx(impl->loaded->context()));
    params.n_batch = static_cast<std::int32_t>(llama_n_batch(impl->loaded->context()));
    params.n_ubatch = static_cast<std::int32_t>(llama_n_ubatch(impl->loaded->context()));
    impl->summary = summarize(impl->loaded->model(), impl->loaded->context(), params);
    impl->summary.kv_bytes = kv_bytes;
  } catch (const std::exception& e) {
    return failure(std::string("cannot load the model: ") + e.what());
  }
  // From here on llama-common's warnings would print what clients send and models say (patterns of schemas, whole
  // answers that do not parse): nobody's log unless asked for.
  if (params.verbosity <= LOG_LEVEL_WARN) common_log_set_verbosity_thold(LOG_LEVEL_ERROR);
  return std::unique_ptr<LlamaModel>(new LlamaModel(std::move(impl)));
}

llama_model* LlamaModel::model() const { return impl_->loaded->model(); }
llama_context* LlamaModel::context() const { return impl_->loaded->context(); }
const llama_vocab* LlamaModel::vocab() const { return llama_model_get_vocab(model()); }
const common_params& LlamaModel::params() const { return impl_->config.params(); }
std::int32_t LlamaModel::n_slots() const { return impl_->n_slots; }
std::int32_t LlamaModel::n_sequences_max() const { return impl_->n_sequences_max; }
const LlamaModel::Summary& LlamaModel::summary() const { return impl_->summary; }

}  // namespace coppice::engine
