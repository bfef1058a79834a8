#include "engine/backends.h"

#include <ggml-backend.h>
#include <llama.h>

#include <cstdio>
#include <mutex>

#include "engine/llama_log.h"

namespace coppice::engine {
namespace {

bool have_cpu() { return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) != nullptr; }

}  // namespace

Result<void> load_backends(const std::string& dir) {
  static std::mutex mutex;
  static bool loaded = false;  // guarded by mutex
  std::lock_guard lock(mutex);
  if (loaded) return {};
  install_log();
  if (!have_cpu() && !dir.empty()) ggml_backend_load_all_from_path(dir.c_str());
  if (!have_cpu()) ggml_backend_load_all();
  if (!have_cpu()) {
    return fail(ErrorKind::internal, "no llama.cpp backend for this CPU was found in '" + dir + "'");
  }
  llama_backend_init();
  loaded = true;
  return {};
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    std::string name = std::string(ggml_backend_dev_name(device)) + ": " + ggml_backend_dev_description(device);
    const auto type = ggml_backend_dev_type(device);
    if (type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU) {
      std::size_t free = 0, total = 0;
      ggml_backend_dev_memory(device, &free, &total);
      char memory[64];
      std::snprintf(memory, sizeof memory, " (%.1f of %.1f GiB free)", static_cast<double>(free) / (1ULL << 30),
                    static_cast<double>(total) / (1ULL << 30));
      name += memory;
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace coppice::engine
