// What a model's KV depends on besides the tokens: KV that was saved under another fingerprint must not be used.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/llama_model.h"

namespace coppice::engine {

// A line of text: a digest of the model's and the adapters' files, KV types, rope settings, flash attention, version of
// llama.cpp. Reads some megabytes of each file: its size, its beginning (all metadata, as far as it goes), its end and
// pieces between them, so that a file of 40 GB takes no minutes. Errors: internal, when a file cannot be read.
Result<std::string> kv_fingerprint(const LlamaModel& model);

// The digest of one file, as hexadecimal digits. Errors: internal.
Result<std::string> sampled_digest(const std::string& path);

}  // namespace coppice::engine
