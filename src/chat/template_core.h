// Templates made from a template's text or a model, with the server's settings spelled out; what make_llama_templates
// is built on, and what tests use to try templates without their models.
//
// The same body gives the same prompt, byte for byte, with one exception: a template may print the date (10 of the 68
// in llama.cpp's collection do, none prints the time of day), so its prompts change at local midnight.
#pragma once

#include <chat.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "chat/chat.h"

namespace coppice::chat {

// The server's side of chat: llama-server's flags of the same names.
struct TemplateSettings {
  bool use_jinja = true;
  bool prefill_assistant = true;  // a last message of the assistant is continued
  bool enable_thinking = true;    // for templates that can think
  bool parse_output = true;       // false: everything is content (--skip-chat-parsing)
  common_reasoning_format reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
  std::map<std::string, std::string> template_kwargs;  // name -> JSON text
  int reasoning_budget_tokens = -1;
  std::string reasoning_budget_message;

  // Makes a tool-call id when the model gives none. Thread-safe. Empty: random ones.
  std::function<std::string()> make_call_id;
};

// Errors: invalid_request when the template does not parse.
Result<std::unique_ptr<Templates>> make_templates_from_source(const std::string& source, const std::string& bos_token,
                                                              const std::string& eos_token, TemplateSettings settings);

// The same for a loaded model; an empty `source` takes the model's own template. `model` may go away afterwards.
Result<std::unique_ptr<Templates>> make_templates_from_model(const llama_model* model, const std::string& source,
                                                             TemplateSettings settings);

}  // namespace coppice::chat
