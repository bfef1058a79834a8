#include "chat/llama_templates.h"

#include <common.h>

#include <utility>

#include "chat/template_core.h"

namespace coppice::chat {

namespace {

TemplateSettings settings_of(const common_params& params) {
  TemplateSettings settings;
  settings.use_jinja = params.use_jinja;
  settings.prefill_assistant = params.prefill_assistant;
  settings.enable_thinking = params.enable_reasoning != 0;
  settings.parse_output = !params.force_pure_content_parser;
  settings.reasoning_format = params.reasoning_format;
  settings.template_kwargs = params.default_template_kwargs;
  settings.reasoning_budget_tokens = params.sampling.reasoning_budget_tokens;
  settings.reasoning_budget_message = params.sampling.reasoning_budget_message;
  return settings;
}

}  // namespace

Result<std::unique_ptr<Templates>> make_llama_templates(const engine::LlamaModel& model) {
  const common_params& params = model.params();
  return make_templates_from_model(model.model(), params.chat_template, settings_of(params));
}

Result<std::unique_ptr<Templates>> make_probe_templates(const engine::LlamaModel& model) {
  const common_params& params = model.params();
  TemplateSettings settings = settings_of(params);
  settings.prefill_assistant = false;
  return make_templates_from_model(model.model(), params.chat_template, std::move(settings));
}

Result<std::unique_ptr<Templates>> make_probe_templates(const std::string& source, const std::string& bos_token,
                                                        const std::string& eos_token) {
  return make_templates_from_source(source, bos_token, eos_token, {.prefill_assistant = false});
}

}  // namespace coppice::chat
