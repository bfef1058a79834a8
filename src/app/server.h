// The running server: builds every layer from the configuration, serves until a signal comes, and takes all down in
// order.
#pragma once

#include "app/config.h"
#include "app/signals.h"
#include "engine/llama_config.h"

namespace coppice::app {

// Returns the process's exit status: 0 after a clean stop, 1 when it could not start, 128 + signal when one came while
// the model was loading.
int run_server(const Config& config, engine::LlamaConfig llama, Signals& signals);

}  // namespace coppice::app
