// How much memory a model and its KV cells take, found without allocating them, and how many cells to take by default.
// Internal to engine/.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"

struct common_params;

namespace coppice::engine {

struct MemoryNeed {
  std::uint64_t model_bytes = 0, kv_bytes = 0, compute_bytes = 0;
  std::uint64_t host_bytes_total = 0;  // RAM of this machine
  bool on_cpu_alone = true;
  TokenPos n_ctx_train = 0;
};

// Reads the model's metadata and lays out its context for params.n_ctx cells (0: as many as it was trained for).
// Nothing if that fails; loading the model will then say why.
std::optional<MemoryNeed> measure_memory(const common_params& params);

// The number of cells when the user gave none; the rule is in engine/llama_model.h. `full` is measure_memory() at
// params.n_ctx == 0.
TokenPos default_cells(const common_params& params, const MemoryNeed& full);

// The CPU part of that rule. Pure.
TokenPos cpu_cells(const MemoryNeed& full, TokenPos cells_max);

}  // namespace coppice::engine
