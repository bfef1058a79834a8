// SamplerFactory: a request's fields and its chat template's demands become llama-common's sampling parameters.
//
// Whatever a client sends either becomes parameters that llama.cpp survives or an error here: llama.cpp itself throws,
// aborts or hangs at some of them (see sampling_fields.cc, gbnf_check.h and json_schema_check.h).
#include <llama.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_find.h"
#include "common.h"
#include "engine/gbnf_check.h"
#include "engine/json_schema_check.h"
#include "engine/llama_runner.h"
#include "engine/llama_sampler.h"
#include "engine/sampling_fields.h"
#include "engine/sampling_values.h"
#include "json-schema-to-grammar.h"
#include "sampling.h"

namespace coppice::engine {
namespace {

using Params = common_params_sampling;

Result<std::string> read_text(const Json& value, const char* name) {
  if (!value.is_string()) return invalid("\"" + std::string(name) + "\" must be a string", name);
  return value.get<std::string>();
}

Result<std::string> schema_to_grammar(const Json& schema, const char* param) {
  if (auto r = check_json_schema(schema, param); !r) return std::unexpected(r.error());
  try {
    return json_schema_to_grammar(common_json::parse(schema.dump()), /* force_gbnf = */ true);
  } catch (const std::exception& e) {
    return invalid(std::string("the JSON schema cannot be used: ") + e.what(), param);
  }
}

// OpenAI's response_format, on routes without a chat template.
Result<common_grammar> read_response_format(const Json& format) {
  constexpr const char* kName = "response_format";
  const Json* type = format.is_object() ? find_field(format, "type") : nullptr;
  if (type == nullptr || !type->is_string())
    return invalid("\"response_format\" must be an object with a \"type\"", kName);
  const Json* schema = nullptr;
  static const Json kAnyObject = {{"type", "object"}};
  if (*type == "text") return common_grammar{};
  if (*type == "json_object") {
    schema = find_field(format, "schema");
    if (schema == nullptr) schema = &kAnyObject;
  } else if (*type == "json_schema") {
    const Json* wrapper = find_field(format, "json_schema");
    schema = wrapper != nullptr && wrapper->is_object() ? find_field(*wrapper, "schema") : nullptr;
    if (schema == nullptr) return invalid("\"response_format\" needs \"json_schema\" with a \"schema\"", kName);
  } else {
    return invalid("\"response_format\": the type must be text, json_object or json_schema", kName);
  }
  auto grammar = schema_to_grammar(*schema, kName);
  if (!grammar) return std::unexpected(grammar.error());
  return common_grammar(COMMON_GRAMMAR_TYPE_OUTPUT_FORMAT, *std::move(grammar));
}

common_grammar_type grammar_type(ChatConstraint::GrammarKind kind) {
  switch (kind) {
    case ChatConstraint::GrammarKind::none: return COMMON_GRAMMAR_TYPE_NONE;
    case ChatConstraint::GrammarKind::user: return COMMON_GRAMMAR_TYPE_USER;
    case ChatConstraint::GrammarKind::output_format: return COMMON_GRAMMAR_TYPE_OUTPUT_FORMAT;
    case ChatConstraint::GrammarKind::tool_calls: return COMMON_GRAMMAR_TYPE_TOOL_CALLS;
  }
  return COMMON_GRAMMAR_TYPE_NONE;
}

struct ReasoningTags {
  std::string start;
  std::vector<std::string> ends;
};

Result<ReasoningTags> read_reasoning_tags(const Json& body) {
  ReasoningTags tags;
  if (const Json* start = find_field(body, "reasoning_budget_start_tag")) {
    auto text = read_text(*start, "reasoning_budget_start_tag");
    if (!text) return std::unexpected(text.error());
    tags.start = *std::move(text);
  }
  constexpr std::size_t kEndsMax = 16;
  const char* name = "reasoning_budget_end_tags";
  const Json* ends = find_field(body, name);
  if (ends == nullptr) ends = find_field(body, name = "reasoning_budget_end_tag");
  if (ends == nullptr) return tags;
  const Json list = ends->is_array() ? *ends : Json::array({*ends});
  if (list.size() > kEndsMax) return invalid("\"" + std::string(name) + "\" may have at most 16 entries", name);
  for (const Json& end : list) {
    auto text = read_text(end, name);
    if (!text) return std::unexpected(text.error());
    tags.ends.push_back(*std::move(text));
  }
  return tags;
}

class LlamaSamplerFactory final : public SamplerFactory {
 public:
  explicit LlamaSamplerFactory(const LlamaModel& model)
      : model_(model.model()),
        context_{.vocab = model.vocab(), .n_cells = model.summary().n_ctx},
        defaults_(model.params().sampling) {
    // Bans of end tokens are added again for each request that wants them.
    std::erase_if(defaults_.logit_bias, [&](const llama_logit_bias& b) {
      return defaults_.ignore_eos && b.bias == -INFINITY && llama_vocab_is_eog(context_.vocab, b.token);
    });
    for (std::int32_t Params::* field : {&Params::penalty_last_n, &Params::dry_penalty_last_n}) {
      if (defaults_.*field < 0 || defaults_.*field > context_.n_cells) defaults_.*field = context_.n_cells;
    }
    defaults_.backend_sampling = false;
    defaults_.no_perf = true;
  }

  Result<std::unique_ptr<Sampler>> make(const Json& body, const ChatConstraint& constraint) const override;
  Json settings(const Json& body) const override;

 private:
  Tokens tokenize(const std::string& text) const {
    return common_tokenize(context_.vocab, text, /* add_special = */ false, /* parse_special = */ true);
  }
  Result<Params> params_of(const Json& body, const ChatConstraint& constraint) const;
  Result<void> read_grammar(const Json& body, Params& to) const;
  Result<void> read_triggers(const Json& body, Params& to) const;
  Result<void> read_reasoning(const Json& body, const ChatConstraint& constraint, Params& to) const;
  void add_constraint(const ChatConstraint& constraint, Params& to) const;
  void add_trigger(const GrammarTrigger& trigger, Params& to) const;
  Tokens tokens_before(const Params& params) const;
  Result<void> check_grammar(const Params& params, const std::string& param) const;

  const llama_model* model_;
  SamplingContext context_;
  Params defaults_;
};

// A grammar of the body's own, when the chat template brought none.
Result<void> LlamaSamplerFactory::read_grammar(const Json& body, Params& to) const {
  if (const Json* value = find_field(body, "grammar")) {
    auto text = read_text(*value, "grammar");
    if (!text) return std::unexpected(text.error());
    to.grammar = text->empty() ? common_grammar{} : common_grammar(COMMON_GRAMMAR_TYPE_USER, *std::move(text));
  } else if (const Json* schema = find_field(body, "json_schema")) {
    auto grammar = schema_to_grammar(*schema, "json_schema");
    if (!grammar) return std::unexpected(grammar.error());
    to.grammar = common_grammar(COMMON_GRAMMAR_TYPE_OUTPUT_FORMAT, *std::move(grammar));
  } else if (const Json* format = find_field(body, "response_format")) {
    auto grammar = read_response_format(*format);
    if (!grammar) return std::unexpected(grammar.error());
    if (!grammar->empty()) to.grammar = *std::move(grammar);
  }
  return read_triggers(body, to);
}

// "grammar_lazy" with "grammar_triggers", each {"type": 0, "token": id} or {"type": 1, "value": word}. Patterns are
// llama.cpp's own business: a regular expression from a client could keep it busy for ever.
Result<void> LlamaSamplerFactory::read_triggers(const Json& body, Params& to) const {
  const Json* lazy = find_field(body, "grammar_lazy");
  if (lazy == nullptr) return {};
  if (!lazy->is_boolean()) return invalid("\"grammar_lazy\" must be true or false", "grammar_lazy");
  to.grammar_lazy = lazy->get<bool>();
  if (!to.grammar_lazy) return {};
  constexpr const char* kName = "grammar_triggers";
  const Json* triggers = find_field(body, kName);
  if (triggers == nullptr || !triggers->is_array() || triggers->empty() || triggers->size() > 64) {
    return invalid("\"grammar_lazy\" needs \"grammar_triggers\", an array of 1 to 64 triggers", kName);
  }
  for (const Json& t : *triggers) {
    const auto type = t.is_object() ? read_integer(t.value("type", Json()), kName) : invalid("", kName);
    const bool is_word = type == COMMON_GRAMMAR_TRIGGER_TYPE_WORD && t.contains("value") && t["value"].is_string();
    const bool is_token = type == COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN && t.contains("token") && t["token"].is_number();
    if (!is_word && !is_token) {
      return invalid(
          "each of \"grammar_triggers\" must be a word {\"type\": 1, \"value\": TEXT} or a token {\"type\": 0, "
          "\"token\": ID}",
          kName);
    }
    const auto token = is_token ? read_integer(t["token"], kName).value_or(-1) : -1;
    if (is_token && (token < 0 || token >= llama_vocab_n_tokens(context_.vocab))) {
      return invalid("a token in \"grammar_triggers\" is not in the vocabulary", kName);
    }
    add_trigger({.type = static_cast<int>(*type),
                 .value = is_word ? t["value"].get<std::string>() : std::string{},
                 .token = static_cast<Token>(token)},
                to);
  }
  return {};
}

void LlamaSamplerFactory::add_trigger(const GrammarTrigger& trigger, Params& to) const {
  common_grammar_trigger added{
      .type = static_cast<common_grammar_trigger_type>(trigger.type), .value = trigger.value, .token = trigger.token};
  if (added.type == COMMON_GRAMMAR_TRIGGER_TYPE_WORD) {
    // A word that is a token of its own is recognised by the token, which costs less and never matches inside a word.
    const Tokens tokens = tokenize(trigger.value);
    if (tokens.size() == 1 && to.preserved_tokens.contains(tokens.front())) {
      added.type = COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN;
      added.token = tokens.front();
    }
  }
  to.grammar_triggers.push_back(std::move(added));
}

void LlamaSamplerFactory::add_constraint(const ChatConstraint& constraint, Params& to) const {
  for (const std::string& text : constraint.preserved_tokens) {
    const Tokens tokens = tokenize(text);
    if (tokens.size() == 1) to.preserved_tokens.insert(tokens.front());
  }
  to.generation_prompt = constraint.generation_prompt;
  if (constraint.grammar.empty()) return;
  // A grammar of no stated kind was asked for by somebody.
  const bool has_kind = constraint.grammar_kind != ChatConstraint::GrammarKind::none;
  const auto type = has_kind ? grammar_type(constraint.grammar_kind) : COMMON_GRAMMAR_TYPE_USER;
  to.grammar = common_grammar(type, constraint.grammar);
  to.grammar_lazy = constraint.grammar_lazy;
  to.grammar_triggers.clear();
  for (const GrammarTrigger& trigger : constraint.grammar_triggers) add_trigger(trigger, to);
}

Result<void> LlamaSamplerFactory::read_reasoning(const Json& body, const ChatConstraint& constraint, Params& to) const {
  constexpr std::int64_t kMax = 1 << 30;
  const char* name = "reasoning_budget_tokens";
  const Json* value = find_field(body, name);
  if (value == nullptr) value = find_field(body, name = "thinking_budget_tokens");
  if (value != nullptr) {
    const auto budget = read_integer(*value, name);
    if (!budget) return std::unexpected(budget.error());
    if (*budget < -1) return invalid("\"" + std::string(name) + "\" must be -1 (no limit) or more", name);
    to.reasoning_budget_tokens = static_cast<std::int32_t>(std::min(*budget, kMax));
  }
  std::string message = to.reasoning_budget_message;
  if (const Json* text = find_field(body, "reasoning_budget_message")) {
    auto given = read_text(*text, "reasoning_budget_message");
    if (!given) return std::unexpected(given.error());
    message = *std::move(given);
  }
  if (constraint.reasoning_budget_tokens >= 0) to.reasoning_budget_tokens = constraint.reasoning_budget_tokens;
  if (!constraint.reasoning_budget_message.empty()) message = constraint.reasoning_budget_message;

  // Without tags there is nothing to count between. They come from the chat template, or else from the body.
  ReasoningTags tags{constraint.thinking_start_tag, constraint.thinking_end_tags};
  if (tags.ends.empty()) {
    auto given = read_reasoning_tags(body);
    if (!given) return std::unexpected(given.error());
    tags = *std::move(given);
  }
  to.reasoning_budget_start = tokenize(tags.start);
  to.reasoning_budget_end.clear();
  to.reasoning_budget_forced.clear();
  for (const std::string& tag : tags.ends) {
    if (!tag.empty()) to.reasoning_budget_end.push_back(tokenize(tag));
  }
  if (to.reasoning_budget_end.empty()) return {};
  to.reasoning_budget_forced = tokenize(message);
  const Tokens& end = to.reasoning_budget_end.front();
  to.reasoning_budget_forced.insert(to.reasoning_budget_forced.end(), end.begin(), end.end());
  return {};
}

Result<Params> LlamaSamplerFactory::params_of(const Json& body, const ChatConstraint& constraint) const {
  if (!body.is_object()) return invalid("the request must be a JSON object");
  Params to = defaults_;
  if (auto r = read_sampling_fields(body, context_, to); !r) return std::unexpected(r.error());
  add_constraint(constraint, to);
  if (constraint.grammar.empty()) {
    if (auto r = read_grammar(body, to); !r) return std::unexpected(r.error());
  }
  if (auto r = read_reasoning(body, constraint, to); !r) return std::unexpected(r.error());
  return to;
}

// The tokens that llama-common feeds to the grammar before the first one is sampled: what the template has already put.
Tokens LlamaSamplerFactory::tokens_before(const Params& params) const {
  if (params.grammar_lazy || !common_grammar_needs_prefill(params.grammar)) return {};
  Tokens tokens = tokenize(params.generation_prompt);
  if (tokens.empty()) return tokens;
  // Some tokenizers put a space first, which it leaves out.
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  const std::string first = common_token_to_piece(context_.vocab, tokens.front(), /* special = */ true);
  if (!first.empty() && is_space(first[0]) && !is_space(params.generation_prompt[0])) tokens.erase(tokens.begin());
  return tokens;
}

// llama.cpp aborts at some grammars, and llama-common leaks when it refuses one; so both are tried here first.
Result<void> LlamaSamplerFactory::check_grammar(const Params& params, const std::string& param) const {
  const std::string& text = params.grammar.grammar;
  if (text.empty()) return {};
  if (auto r = check_gbnf(text, param); !r) return r;
  const bool has_infill = std::ranges::find(params.samplers, COMMON_SAMPLER_TYPE_INFILL) != params.samplers.end();
  if (has_infill) return invalid("\"samplers\": infill does not go with a grammar", "samplers");

  const std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)> compiled(
      llama_sampler_init_grammar(context_.vocab, text.c_str(), "root"), &llama_sampler_free);
  if (!compiled) return invalid("the grammar does not compile", param);
  constexpr const char* kMismatch = "the grammar does not allow what the chat template puts before the answer";
  for (Token token : tokens_before(params)) {
    if (llama_vocab_is_eog(context_.vocab, token)) return fail(ErrorKind::internal, kMismatch);  // would abort
    try {
      llama_sampler_accept(compiled.get(), token);
    } catch (const std::exception&) {
      return fail(ErrorKind::internal, kMismatch);
    }
  }
  return {};
}

Result<std::unique_ptr<Sampler>> LlamaSamplerFactory::make(const Json& body, const ChatConstraint& constraint) const
    try {
  auto params = params_of(body, constraint);
  if (!params) return std::unexpected(params.error());
  const std::string param = !constraint.grammar.empty() && body.contains("tools") ? "tools"
                            : find_field(body, "grammar") != nullptr              ? "grammar"
                            : find_field(body, "json_schema") != nullptr          ? "json_schema"
                            : find_field(body, "response_format") != nullptr      ? "response_format"
                                                                                  : "";
  if (auto r = check_grammar(*params, param); !r) return std::unexpected(r.error());
  common_sampler* chain = common_sampler_init(model_, *params);
  if (chain == nullptr) return fail(ErrorKind::internal, "the sampler could not be made");
  return std::make_unique<LlamaSampler>(chain, context_.vocab);
} catch (const std::exception& e) {
  return invalid(std::string("these sampling settings cannot be used: ") + e.what());
}

Json LlamaSamplerFactory::settings(const Json& body) const try {
  const auto params = params_of(body, {});
  const Params& p = params ? *params : defaults_;
  Json to = show_sampling_fields(p);
  to["grammar"] = p.grammar.grammar;
  to["grammar_lazy"] = p.grammar_lazy;
  to["reasoning_budget_tokens"] = p.reasoning_budget_tokens;
  return to;
} catch (const std::exception&) {
  return show_sampling_fields(defaults_);
}

}  // namespace

std::unique_ptr<SamplerFactory> make_llama_sampler_factory(const LlamaModel& model) {
  return std::make_unique<LlamaSamplerFactory>(model);
}

}  // namespace coppice::engine
