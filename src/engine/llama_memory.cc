#include "engine/llama_memory.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "common.h"
#include "engine/llama_model.h"
#include "fit.h"
#include "llama.h"

namespace coppice::engine {
namespace {

constexpr TokenPos kCellsStep = 256;  // llama.cpp rounds up to this
constexpr TokenPos kCellsMin = 4096;  // what --fit takes as its least, too

}  // namespace

std::optional<MemoryNeed> measure_memory(const common_params& params) {
  common_params copy = params;
  copy.load_progress_callback = nullptr;
  const llama_model_params model_params = common_model_params_to_llama(copy);
  const llama_context_params context_params = common_context_params_to_llama(copy);
  std::vector<ggml_backend_dev_t> devices;
  std::uint32_t n_layers = 0, n_ctx_train = 0, n_experts = 0;
  MemoryNeed need;
  try {
    // The last entry stands for the host, the others for `devices`.
    const auto parts = common_get_device_memory_data(copy.model.path.c_str(), &model_params, &context_params, devices,
                                                     n_layers, n_ctx_train, n_experts, GGML_LOG_LEVEL_ERROR);
    if (parts.empty()) return std::nullopt;
    for (const common_device_memory_data& part : parts) {
      need.model_bytes += part.model;
      need.kv_bytes += part.context;
      need.compute_bytes += part.compute;
    }
    need.host_bytes_total = static_cast<std::uint64_t>(std::max<std::int64_t>(0, parts.back().total));
  } catch (const std::exception&) {
    return std::nullopt;
  }
  need.on_cpu_alone = devices.empty();
  need.n_ctx_train = static_cast<TokenPos>(n_ctx_train);
  return need;
}

TokenPos cpu_cells(const MemoryNeed& full, TokenPos cells_max) {
  const TokenPos wanted = std::min(full.n_ctx_train, cells_max);
  if (wanted <= kCellsMin || full.kv_bytes == 0 || full.host_bytes_total == 0) return wanted;
  const std::uint64_t taken = std::min(full.host_bytes_total, full.model_bytes + full.compute_bytes);
  const std::uint64_t budget = (full.host_bytes_total - taken) / 2;
  const double share = static_cast<double>(budget) / static_cast<double>(full.kv_bytes);
  const double affordable = share * static_cast<double>(full.n_ctx_train);
  if (affordable >= static_cast<double>(wanted)) return wanted;
  const TokenPos rounded = static_cast<TokenPos>(affordable) / kCellsStep * kCellsStep;
  return std::max(kCellsMin, rounded);
}

std::int32_t affordable_sequences(std::int32_t n_slots, std::uint64_t bytes_few, std::uint64_t bytes_more) {
  const auto limit = static_cast<std::int32_t>(llama_max_parallel_sequences());
  if (bytes_more <= bytes_few) return std::min(limit, 2 * n_slots + 1);
  const double each = static_cast<double>(bytes_more - bytes_few) / n_slots;
  const double paid_for = static_cast<double>(bytes_few) / 4 / each;
  const double extra = std::clamp(paid_for, static_cast<double>(n_slots), static_cast<double>(limit));
  return std::min(limit, n_slots + static_cast<std::int32_t>(extra) + 1);
}

std::int32_t context_sequences(const common_params& params, std::int32_t n_slots) {
  const auto limit = static_cast<std::int32_t>(llama_max_parallel_sequences());
  const auto kv_bytes = [&](std::int32_t n_seqs) {
    common_params copy = params;
    set_sequences(copy, n_seqs);
    const auto need = measure_memory(copy);
    return need ? need->kv_bytes : 0;
  };
  return affordable_sequences(n_slots, kv_bytes(n_slots), kv_bytes(std::min(limit, 2 * n_slots)));
}

void set_sequences(common_params& params, std::int32_t n_seqs) {
  params.n_parallel = n_seqs;
  params.n_batch = std::max(params.n_batch, n_seqs);
  params.n_outputs_max = std::max(params.n_outputs_max, n_seqs);
  params.n_outputs_max_per_seq = params.n_outputs_max;
}

TokenPos default_cells(const common_params& params, const MemoryNeed& full) {
  if (full.on_cpu_alone) return cpu_cells(full, kDefaultCellsMax);
  const TokenPos wanted = std::min(full.n_ctx_train, kDefaultCellsMax);
  if (!params.fit_params) return wanted;
  // --fit chooses the context only while it is unset, so ask it on copies first. It may refuse; then it changed
  // nothing.
  common_params copy = params;
  copy.load_progress_callback = nullptr;
  llama_model_params model_params = common_model_params_to_llama(copy);
  llama_context_params context_params = common_context_params_to_llama(copy);
  const auto status =
      common_fit_params(copy.model.path.c_str(), &model_params, &context_params, copy.tensor_split,
                        copy.tensor_buft_overrides.data(), copy.fit_params_target.data(),
                        static_cast<std::uint32_t>(copy.fit_params_min_ctx), nullptr, GGML_LOG_LEVEL_ERROR);
  if (status != COMMON_PARAMS_FIT_STATUS_SUCCESS || context_params.n_ctx == 0) return wanted;
  return std::min(wanted, static_cast<TokenPos>(context_params.n_ctx));
}

}  // namespace coppice::engine
