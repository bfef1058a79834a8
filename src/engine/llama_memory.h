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

// How many sequences the context has to be made for, so that there are some beside the slots' own. Where another one
// costs memory (recurrent states, sliding windows): as many as a quarter more memory for KV pays for, at least 2 *
// n_slots, and one to save ranges through, at most 256. Where those cost none, no more than those: on attention,
// LlamaRunner::probe uses ids up to 255 whatever the context was made for. Asks llama.cpp twice what it would allocate.
std::int32_t context_sequences(const common_params& params, std::int32_t n_slots);

// The arithmetic of it: `bytes_few` for n_slots sequences, `bytes_more` for twice as many. Pure.
std::int32_t affordable_sequences(std::int32_t n_slots, std::uint64_t bytes_few, std::uint64_t bytes_more);

// As many sequences, and outputs of one batch, as llama.cpp wants for them.
void set_sequences(common_params& params, std::int32_t n_seqs);

// The part of default_cells() for a CPU. Pure.
TokenPos cpu_cells(const MemoryNeed& full, TokenPos cells_max);

}  // namespace coppice::engine
