#include "chat/template_core.h"

#include <common.h>
#include <json-schema-to-grammar.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/json.h"
#include "chat/chat_request.h"
#include "chat/json_fields.h"
#include "chat/late_system.h"
#include "chat/output_parser.h"
#include "chat/plain_text.h"

namespace coppice::chat {
namespace {

using GrammarKind = engine::ChatConstraint::GrammarKind;

// Tool calls in the history may hold text that is no JSON object (an answer cut short). Templates that take arguments
// as an object would refuse the whole conversation from then on, so they get it as the one member of an object.
void wrap_broken_arguments(std::vector<common_chat_msg>& messages) {
  for (common_chat_msg& message : messages) {
    for (common_chat_tool_call& call : message.tool_calls) {
      const Json parsed = Json::parse(call.arguments, nullptr, /*allow_exceptions=*/false);
      if (!parsed.is_object()) call.arguments = to_text(Json{{"input", call.arguments}});
    }
  }
}

// The words of the library's exception, cut to a size that fits into an error message. The template engine puts the
// place in the template's source before them, which says nothing to a client.
std::string words_of(const std::exception& e) {
  constexpr std::size_t bytes_max = 1000;
  constexpr std::string_view words_follow = "\nError: ";
  std::string text = e.what();
  if (const auto at = text.rfind(words_follow); at != std::string::npos) text.erase(0, at + words_follow.size());
  std::ranges::replace(text, '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  if (text.size() > bytes_max) text = text.substr(0, bytes_max) + "...";
  return text;
}

// The grammar of one schema. Throws when there is none.
std::string grammar_of(const std::string& schema) { return json_schema_to_grammar(common_json::parse(schema)); }

Result<void> check_schema(const std::string& schema, const std::string& param) {
  try {
    grammar_of(schema);
    return {};
  } catch (const std::exception& e) {
    return invalid("'" + param + "' is not a usable JSON schema: " + words_of(e), param);
  }
}

// Finds the field that made rendering throw. A schema is at fault when it gives no grammar by itself.
Error explain(const std::exception& e, const ChatRequest& request) {
  if (!request.json_schema.empty()) {
    if (auto ok = check_schema(request.json_schema, request.schema_param); !ok) return ok.error();
  }
  for (std::size_t i = 0; i < request.tools.size(); ++i) {
    const std::string param = "tools[" + std::to_string(i) + "].function.parameters";
    if (auto ok = check_schema(request.tools[i].parameters, param); !ok) return ok.error();
  }
  return {ErrorKind::invalid_request, "The chat template does not accept these messages: " + words_of(e), "messages"};
}

// Mistral's templates refuse ids that are not nine characters long; anything goes for the others.
std::function<std::string()> id_maker(const std::string& source) {
  if (source.find("length != 9") != std::string::npos) return [] { return random_id(9); };
  return [] { return "call_" + random_id(24); };
}

class LlamaTemplates final : public Templates {
 public:
  LlamaTemplates(common_chat_templates_ptr templates, TemplateSettings settings)
      : templates_(std::move(templates)), settings_(std::move(settings)) {
    if (!settings_.make_call_id) settings_.make_call_id = id_maker(source());
    capabilities_ = common_chat_templates_get_caps(templates_.get());
    supports_thinking_ = settings_.use_jinja && probe_thinking();
    const auto render_whole = [this](const auto& messages) { return apply_to(messages, false); };
    late_system_ = probe_late_system(render_whole);
    if (!settings_.use_jinja) return;
    text_is_plain_ = render_alike(render_whole, [this](const auto& messages) { return apply_to(messages, true); });
    find_parser_templates();
  }

  Result<Prompt> render(const Json& body) const override {
    try {
      auto request = read_chat_request(body);
      if (!request) return std::unexpected(request.error());
      return render_request(*std::move(request));
    } catch (const std::exception& e) {  // nothing above is meant to throw; a request must not take the process down
      return fail(ErrorKind::internal, "Reading the chat request failed: " + words_of(e));
    }
  }

  Result<std::string> render_text(const Json& body) const override {
    if (!text_is_plain_) return Templates::render_text(body);
    try {
      auto request = read_chat_request(body);
      if (!request) return std::unexpected(request.error());
      auto inputs = prepare(*request);
      if (!inputs) return std::unexpected(inputs.error());
      // The beginning of an answer is put behind the text by what is skipped here.
      if (inputs->continue_final_message != COMMON_CHAT_CONTINUATION_NONE) return Templates::render_text(body);
      inputs->force_pure_content = true;
      return common_chat_templates_apply(templates_.get(), *inputs).prompt;
    } catch (const std::exception& e) {
      return fail(ErrorKind::invalid_request, words_of(e));
    }
  }

  std::unique_ptr<OutputParser> make_parser(const Prompt& prompt) const override {
    return std::make_unique<LlamaOutputParser>(std::static_pointer_cast<const ParserState>(prompt.parser_state));
  }

  std::string source() const override { return common_chat_templates_source(templates_.get()); }

  Json capabilities() const override {
    Json out = Json::object();
    for (const auto& [name, value] : capabilities_) out[name] = value;
    return out;
  }

  LateSystemFacts late_system() const override {
    return {std::string(name(late_system_.fate)), std::string(name(late_system_.form)), late_system_.works};
  }

 private:
  bool capable(const std::string& name) const {
    const auto it = capabilities_.find(name);
    return it != capabilities_.end() && it->second;
  }

  bool probe_thinking() const {
    try {
      return common_chat_templates_support_enable_thinking(templates_.get());
    } catch (const std::exception&) {
      return false;
    }
  }

  // Throws what the template throws. The text of these messages; `plain`: see render_text().
  std::string apply_to(const std::vector<common_chat_msg>& messages, bool plain) const {
    common_chat_templates_inputs inputs;
    inputs.use_jinja = settings_.use_jinja;
    inputs.messages = messages;
    inputs.force_pure_content = plain;
    return common_chat_templates_apply(templates_.get(), inputs).prompt;
  }

  // What the library is to be given; adapts the messages of `request`.
  Result<common_chat_templates_inputs> prepare(ChatRequest& request) const {
    if (!settings_.use_jinja && !request.tools.empty()) {
      return invalid("Tools need the model's own template; the server runs with --no-jinja.", "tools");
    }
    auto inputs = make_inputs(request);
    if (auto ok = settle_continuation(request, inputs); !ok) return std::unexpected(ok.error());
    adapt_late_system(late_system_.form, request.messages);
    if (capable("supports_object_arguments")) wrap_broken_arguments(request.messages);
    inputs.messages = request.messages;
    return inputs;
  }

  Result<Prompt> render_request(ChatRequest request) const {
    auto inputs = prepare(request);
    if (!inputs) return std::unexpected(inputs.error());
    common_chat_params params;
    try {
      params = apply(*inputs, request.forced_tool);
    } catch (const std::exception& e) {
      return std::unexpected(explain(e, request));
    }
    return make_prompt(std::move(params), *inputs, request);
  }

  common_chat_templates_inputs make_inputs(const ChatRequest& request) const {
    common_chat_templates_inputs inputs;
    inputs.use_jinja = settings_.use_jinja;
    inputs.tools = request.tools;
    inputs.tool_choice = request.tool_choice;
    inputs.parallel_tool_calls = request.parallel_tool_calls.value_or(capable("supports_parallel_tool_calls"));
    inputs.json_schema = request.json_schema;
    inputs.grammar = request.grammar;
    inputs.reasoning_format = request.reasoning_format.value_or(settings_.reasoning_format);
    inputs.force_pure_content = !settings_.parse_output;

    inputs.chat_template_kwargs = settings_.template_kwargs;
    for (const auto& [name, value] : request.template_kwargs) inputs.chat_template_kwargs[name] = value;
    // A keyword of this name would override the input's own field, so there is only the field.
    inputs.enable_thinking = settings_.enable_thinking && supports_thinking_;
    if (const auto it = inputs.chat_template_kwargs.find("enable_thinking"); it != inputs.chat_template_kwargs.end()) {
      inputs.enable_thinking = it->second == "true";
      inputs.chat_template_kwargs.erase(it);
    }
    if (request.enable_thinking) inputs.enable_thinking = *request.enable_thinking;
    if (request.reasoning_effort == "none") {
      inputs.enable_thinking = false;
      inputs.chat_template_kwargs.erase("reasoning_effort");
    } else if (!request.reasoning_effort.empty()) {
      inputs.chat_template_kwargs["reasoning_effort"] = to_text(Json(request.reasoning_effort));
    }
    return inputs;
  }

  // Whether the last message is to be continued instead of answered.
  Result<void> settle_continuation(const ChatRequest& request, common_chat_templates_inputs& inputs) const {
    const std::string param = "continue_final_message";
    const auto& messages = request.messages;
    const bool ends_in_answer = messages.back().role == "assistant";
    inputs.continue_final_message = request.continuation;
    if (request.continuation == COMMON_CHAT_CONTINUATION_NONE) {
      inputs.add_generation_prompt = request.add_generation_prompt.value_or(true);
      if (!ends_in_answer || !settings_.prefill_assistant) return {};
      inputs.continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
    } else {
      if (request.add_generation_prompt == true) {
        return invalid("'add_generation_prompt' and 'continue_final_message' cannot both be true.", param);
      }
      if (!ends_in_answer) return invalid("'continue_final_message' needs a last message of the assistant.", param);
    }
    inputs.add_generation_prompt = false;
    const std::string last = "messages[" + std::to_string(messages.size() - 1) + "]";
    if (!messages.back().tool_calls.empty()) {
      return invalid("A last message with tool calls cannot be continued; send the tools' results after it.", last);
    }
    if (messages.size() >= 2 && messages[messages.size() - 2].role == "assistant") {
      return invalid("Two messages of the assistant at the end cannot be continued.", last);
    }
    return {};
  }

  // The library (v0.4.0) derives the tool-call format by comparing renderings, and a BOS or EOS text in them can
  // mislead it: for Mistral Small 3.2 it then expects calls that the model does not write. It does not happen without
  // those texts, so where the two analyses differ, the parser and the grammar come from a second copy of the template
  // that has none.
  void find_parser_templates() {
    try {
      if (!common_chat_templates_source(templates_.get(), "tool_use").empty()) return;  // two templates: not seen there
      auto plain = common_chat_templates_ptr(common_chat_templates_init(nullptr, source()));
      common_chat_templates_inputs inputs;
      common_chat_msg question;
      question.role = "user";
      question.content = "?";
      inputs.messages = {question};
      inputs.tools = {{"get_thing", "", R"({"type":"object","properties":{"name":{"type":"string"}}})"}};
      const auto grammar = common_chat_templates_apply(templates_.get(), inputs).grammar;
      if (common_chat_templates_apply(plain.get(), inputs).grammar != grammar) parser_templates_ = std::move(plain);
    } catch (const std::exception&) {
      parser_templates_.reset();  // a template that cannot do without is parsed as it is
    }
  }

  // Throws what the library throws. A forced tool narrows what the model may call, not what it is told of: with fewer
  // tools in the prompt, nothing of it could be reused.
  common_chat_params apply(common_chat_templates_inputs inputs, const std::string& forced_tool) const {
    auto params = common_chat_templates_apply(templates_.get(), inputs);
    if (forced_tool.empty() && !parser_templates_) return params;
    if (!forced_tool.empty()) {
      std::erase_if(inputs.tools, [&](const common_chat_tool& tool) { return tool.name != forced_tool; });
      inputs.parallel_tool_calls = false;
    }
    const auto& parsing = parser_templates_ ? parser_templates_ : templates_;
    auto narrow = common_chat_templates_apply(parsing.get(), inputs);
    // A parser belongs to the generation prompt that it was made with.
    const bool fits = narrow.generation_prompt == params.generation_prompt;
    if (fits) narrow.prompt = std::move(params.prompt);
    return fits || !parser_templates_ ? narrow : common_chat_templates_apply(templates_.get(), inputs);
  }

  Result<Prompt> make_prompt(common_chat_params params, const common_chat_templates_inputs& inputs,
                             const ChatRequest& request) const {
    Prompt out;
    out.text = std::move(params.prompt);
    out.stops = params.additional_stops;
    auto& constraint = out.constraint;
    constraint.generation_prompt = params.generation_prompt;
    constraint.preserved_tokens = params.preserved_tokens;
    constraint.thinking_start_tag = params.thinking_start_tag;
    constraint.thinking_end_tags = params.thinking_end_tags;
    constraint.reasoning_budget_tokens = request.reasoning_budget_tokens.value_or(-1);
    if (constraint.reasoning_budget_tokens == -1) {
      constraint.reasoning_budget_tokens = settings_.reasoning_budget_tokens;
    }
    constraint.reasoning_budget_message = request.reasoning_budget_message.value_or(settings_.reasoning_budget_message);
    if (auto ok = take_grammar(params, inputs, request, constraint); !ok) return std::unexpected(ok.error());

    auto state = std::make_shared<ParserState>();
    state->params = common_chat_parser_params(params);
    state->params.reasoning_format = inputs.reasoning_format;
    state->params.is_continuation = inputs.continue_final_message != COMMON_CHAT_CONTINUATION_NONE;
    if (!params.parser.empty()) state->params.parser.load(params.parser);
    state->model_gives_ids = params.parser.find(R"("tag":"tool-id")") != std::string::npos;
    for (const common_chat_tool& tool : request.tools) state->tool_names.push_back(tool.name);
    state->thinking_end_tags = params.thinking_end_tags;
    state->make_call_id = settings_.make_call_id;
    out.one_call = state->one_call = request.parallel_tool_calls == false && !request.tools.empty();
    out.parser_state = std::move(state);
    return out;
  }

  // A grammar made by the template's code covers the whole answer from the generation prompt on, so the sampler must
  // walk it past that prompt first; one that was made from a schema or by the client covers the generated text alone.
  Result<void> take_grammar(const common_chat_params& params, const common_chat_templates_inputs& inputs,
                            const ChatRequest& request, engine::ChatConstraint& constraint) const {
    if (!request.grammar.empty()) {
      constraint.grammar = request.grammar;
      constraint.grammar_kind = GrammarKind::user;
      return {};
    }
    constraint.grammar = params.grammar;
    constraint.grammar_lazy = params.grammar_lazy;
    for (const common_grammar_trigger& trigger : params.grammar_triggers) {
      constraint.grammar_triggers.push_back({static_cast<int>(trigger.type), trigger.value, trigger.token});
    }
    if (!params.grammar.empty()) {
      const bool from_template = settings_.use_jinja;
      constraint.grammar_kind = !from_template                 ? GrammarKind::user
                                : !request.json_schema.empty() ? GrammarKind::output_format
                                                               : GrammarKind::tool_calls;
      return {};
    }
    if (!request.json_schema.empty()) {  // the template's code has no use for a schema
      if (auto ok = check_schema(request.json_schema, request.schema_param); !ok) return ok;
      constraint.grammar = grammar_of(request.json_schema);
      constraint.grammar_kind = GrammarKind::user;
      return {};
    }
    if (inputs.tool_choice == COMMON_CHAT_TOOL_CHOICE_REQUIRED) {
      return invalid("The model's chat template has no tool calls, so none can be required.", "tool_choice");
    }
    return {};
  }

  common_chat_templates_ptr templates_;
  common_chat_templates_ptr parser_templates_;  // or null: see find_parser_templates
  TemplateSettings settings_;
  std::map<std::string, bool> capabilities_;
  bool supports_thinking_ = false;
  LateSystemProbe late_system_;
  bool text_is_plain_ = false;  // see render_text()
};

// The library rethrows a parse error without its words; parsing once more gives them.
std::string parse_error(const std::string& source, const std::exception& thrown) {
  try {
    const common_chat_template parsed(source, "", "");
  } catch (const std::exception& e) {
    return words_of(e);
  }
  return words_of(thrown);
}

Result<std::unique_ptr<Templates>> make_templates(const llama_model* model, const std::string& source,
                                                  const std::string& bos_token, const std::string& eos_token,
                                                  TemplateSettings settings) {
  try {
    auto templates = common_chat_templates_init(model, source, bos_token, eos_token);
    return std::make_unique<LlamaTemplates>(std::move(templates), std::move(settings));
  } catch (const std::exception& e) {
    const std::string which = source.empty() ? "The model's chat template" : "The chat template given";
    return invalid(which + " cannot be used: " + parse_error(source, e));
  }
}

}  // namespace

Result<std::unique_ptr<Templates>> make_templates_from_source(const std::string& source, const std::string& bos_token,
                                                              const std::string& eos_token, TemplateSettings settings) {
  // REQUIRED by the library: a text, as there is no model to ask. "chatml" is its name for its built-in one.
  return make_templates(nullptr, source.empty() ? "chatml" : source, bos_token, eos_token, std::move(settings));
}

Result<std::unique_ptr<Templates>> make_templates_from_model(const llama_model* model, const std::string& source,
                                                             TemplateSettings settings) {
  return make_templates(model, source, {}, {}, std::move(settings));
}

}  // namespace coppice::chat
