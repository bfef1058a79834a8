// llama.cpp's compute backends: one shared library per kind of device and CPU generation, loaded at run time.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace coppice::engine {

// Loads the backends in `dir`, and from llama.cpp's default places if `dir` holds none (or is empty). Does nothing when
// called again or when they are linked in. Thread-safe. Errors: internal, when not even a CPU backend could be loaded.
Result<void> load_backends(const std::string& dir);

// What this machine can compute on, for people: "CPU: AMD EPYC ...", "Vulkan0: llvmpipe (15.6 GiB free)".
std::vector<std::string> device_names();

}  // namespace coppice::engine
