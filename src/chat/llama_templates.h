// Templates on llama-common's chat code.
#pragma once

#include <memory>
#include <string>

#include "chat/chat.h"
#include "engine/llama_model.h"

namespace coppice::chat {

// Errors: invalid_request when --chat-template does not parse.
Result<std::unique_ptr<Templates>> make_llama_templates(const engine::LlamaModel& model);

// The same, but a last message of the assistant is taken as it stands and not continued: for probe_drift().
Result<std::unique_ptr<Templates>> make_probe_templates(const engine::LlamaModel& model);

// Of a template's text, without its model, with the server's defaults; an empty one is llama.cpp's chatml.
Result<std::unique_ptr<Templates>> make_probe_templates(const std::string& source, const std::string& bos_token,
                                                        const std::string& eos_token);

}  // namespace coppice::chat
