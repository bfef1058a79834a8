#include "engine/model_template.h"

#include <gguf.h>

#include <memory>

#include "engine/llama_log.h"

namespace coppice::engine {
namespace {

using File = std::unique_ptr<gguf_context, decltype(&gguf_free)>;

// The token whose id stands under `key`.
std::string token_text(const gguf_context* file, const char* key) {
  const std::int64_t tokens = gguf_find_key(file, "tokenizer.ggml.tokens"), id_key = gguf_find_key(file, key);
  if (tokens < 0 || id_key < 0 || gguf_get_kv_type(file, id_key) != GGUF_TYPE_UINT32) return {};
  if (gguf_get_kv_type(file, tokens) != GGUF_TYPE_ARRAY || gguf_get_arr_type(file, tokens) != GGUF_TYPE_STRING)
    return {};
  const std::size_t id = gguf_get_val_u32(file, id_key);
  return id < gguf_get_arr_n(file, tokens) ? gguf_get_arr_str(file, tokens, id) : std::string();
}

}  // namespace

Result<ModelTemplate> read_model_template(const std::string& path) {
  install_log();
  const ErrorCapture errors;
  const File file(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}), gguf_free);
  if (file == nullptr) {
    const std::string why = errors.first();
    return invalid(path + " is missing or no GGUF file" + (why.empty() ? "" : ": " + why), "--model");
  }
  ModelTemplate out;
  const std::int64_t key = gguf_find_key(file.get(), "tokenizer.chat_template");
  if (key >= 0 && gguf_get_kv_type(file.get(), key) == GGUF_TYPE_STRING) out.source = gguf_get_val_str(file.get(), key);
  out.bos_token = token_text(file.get(), "tokenizer.ggml.bos_token_id");
  out.eos_token = token_text(file.get(), "tokenizer.ggml.eos_token_id");
  return out;
}

}  // namespace coppice::engine
