// Templates on llama-common's chat code.
#pragma once

#include <memory>

#include "chat/chat.h"
#include "engine/llama_model.h"

namespace coppice::chat {

// Errors: invalid_request when --chat-template does not parse.
Result<std::unique_ptr<Templates>> make_llama_templates(const engine::LlamaModel& model);

}  // namespace coppice::chat
