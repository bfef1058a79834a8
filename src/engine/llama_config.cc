#include "engine/llama_config.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <string_view>
#include <unordered_map>

#include "arg.h"
#include "chat.h"  // only to check a template before the parser does, which would exit
#include "common.h"
#include "engine/llama_log.h"
#include "log.h"

namespace coppice::engine {
namespace {

constexpr llama_example kExample = LLAMA_EXAMPLE_SERVER;

// These print and call exit() inside the parser.
constexpr std::string_view kExiting[] = {"-h",  "--help",       "--usage",           "--version",
                                         "-cl", "--cache-list", "--completion-bash", "--list-devices"};
// These change process-wide state (the log, the list of remote devices), so only the real parse may run them.
constexpr std::string_view kOnce[] = {"--log-file",   "--log-disable",    "--log-colors",
                                      "--log-prefix", "--log-timestamps", "--rpc"};

template <std::size_t N>
bool contains(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

int n_values(const common_arg& option) {
  if (option.handler_str_str != nullptr) return 2;
  return option.handler_string != nullptr || option.handler_int != nullptr ? 1 : 0;
}

std::string trimmed(std::string text) {
  while (!text.empty() && std::string_view(" \n\r\t").find(text.back()) != std::string_view::npos) text.pop_back();
  constexpr std::string_view prefix = "error: ";
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
  return text;
}

Result<int> whole_number(const std::string& text) {
  int value = 0;
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.data() + text.size();
  auto [stopped, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stopped != end) return invalid("'" + text + "' is not a whole number that fits");
  return value;
}

// Runs an option's handler on `params`. `what` names the flag or variable for the message.
Result<void> apply(const common_arg& option, common_params& params, const std::string& what,
                   const std::vector<std::string>& values, bool positive) {
  if (!option.args.empty() && contains(kOnce, option.args.front())) return {};
  try {
    if (option.handler_void != nullptr) {
      option.handler_void(params);
    } else if (option.handler_bool != nullptr) {
      option.handler_bool(params, positive);
    } else if (option.handler_int != nullptr) {
      auto number = whole_number(values.at(0));
      if (!number) return invalid(what + ": " + number.error().message, what);
      option.handler_int(params, *number);
    } else if (option.handler_string != nullptr) {
      option.handler_string(params, values.at(0));
    } else if (option.handler_str_str != nullptr) {
      option.handler_str_str(params, values.at(0), values.at(1));
    }
  } catch (const std::exception& e) {
    return invalid(what + ": " + trimmed(e.what()), what);
  }
  return {};
}

Result<void> apply_env(const common_arg& option, common_params& params) {
  std::string value;
  if (!option.get_value_from_env(value)) return {};
  using namespace common_arg_utils;
  if (option.handler_void != nullptr && !is_truthy(value)) return {};
  if (option.handler_bool != nullptr && !is_truthy(value) && !is_falsey(value)) {
    return invalid(std::string(option.env) + ": '" + value + "' is neither true nor false", option.env);
  }
  return apply(option, params, option.env, {value, value}, is_truthy(value));
}

// Goes through the arguments as llama-common's parser will, on scratch parameters. That parser prints what it does not
// like, and for some errors exits; this finds the same errors first and returns them.
Result<void> rehearse(const std::vector<std::string>& args) {
  common_params scratch;
  common_params_context context = common_params_parser_init(scratch, kExample);
  std::unordered_map<std::string, std::pair<const common_arg*, bool>> by_name;
  for (const common_arg& option : context.options) {
    for (const char* name : option.args) by_name[name] = {&option, true};
    for (const char* name : option.args_neg) by_name[name] = {&option, false};
  }
  for (const common_arg& option : context.options) {
    if (auto done = apply_env(option, scratch); !done) return done;
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::string name = args[i];
    if (name.starts_with("--")) std::ranges::replace(name, '_', '-');
    auto found = by_name.find(name);
    if (found == by_name.end()) return invalid("unknown option: " + args[i], args[i]);
    if (contains(kExiting, name)) return invalid(name + " prints something and exits; it cannot be used here", name);
    const auto [option, positive] = found->second;
    std::vector<std::string> values;
    for (int n = n_values(*option); n > 0; --n) {
      if (++i >= args.size()) return invalid(name + " needs a value", name);
      values.push_back(args[i]);
    }
    if (auto done = apply(*option, scratch, name, values, positive); !done) return done;
  }
  try {
    if (!scratch.chat_template.empty() && !common_chat_verify_template(scratch.chat_template, scratch.use_jinja)) {
      return invalid("the chat template given does not parse", "--chat-template");
    }
  } catch (const std::exception& e) {
    return invalid(std::string("the chat template given does not parse: ") + e.what(), "--chat-template");
  }
  return {};
}

}  // namespace

const std::vector<LlamaOption>& llama_options() {
  static const std::vector<LlamaOption> options = [] {
    common_params scratch;
    std::vector<LlamaOption> list;
    for (const common_arg& from : common_params_parser_init(scratch, kExample).options) {
      LlamaOption to;
      to.names.assign(from.args.begin(), from.args.end());
      to.negations.assign(from.args_neg.begin(), from.args_neg.end());
      if (from.env != nullptr) to.env = from.env;
      if (from.value_hint != nullptr) to.value_hint = from.value_hint;
      if (from.value_hint_2 != nullptr) to.value_hint += std::string(" ") + from.value_hint_2;
      to.help = from.help;
      to.n_values = n_values(from);
      to.sampling = from.is_sampling;
      to.speculative = from.is_spec;
      list.push_back(std::move(to));
    }
    return list;
  }();
  return options;
}

LlamaConfig::LlamaConfig() : params_(std::make_unique<common_params>()) {}
LlamaConfig::LlamaConfig(LlamaConfig&&) noexcept = default;
LlamaConfig& LlamaConfig::operator=(LlamaConfig&&) noexcept = default;
LlamaConfig::~LlamaConfig() = default;

Result<LlamaConfig> LlamaConfig::parse(const std::vector<std::string>& args) {
  install_log();
  LlamaConfig config;
  config.params_->verbosity = LOG_LEVEL_WARN;  // quiet unless asked; -v and --verbosity raise it
  common_log_set_verbosity_thold(LOG_LEVEL_WARN);
  try {
    if (auto rehearsed = rehearse(args); !rehearsed) return std::unexpected(rehearsed.error());

    std::vector<std::string> storage{"coppice"};
    storage.insert(storage.end(), args.begin(), args.end());
    std::vector<char*> argv;
    for (std::string& arg : storage) argv.push_back(arg.data());
    if (!common_params_parse(static_cast<int>(argv.size()), argv.data(), *config.params_, kExample)) {
      return invalid("llama.cpp refuses the options; its reason is printed above");
    }
  } catch (const std::exception& e) {
    return invalid(std::string("cannot read the options: ") + e.what());
  }
  return config;
}

ServerFlags LlamaConfig::server() const {
  const common_params& from = *params_;
  ServerFlags to;
  to.host = from.hostname;
  to.port = from.port;
  to.n_parallel = from.n_parallel;
  to.slot_prompt_similarity = from.slot_prompt_similarity;
  to.api_keys = from.api_keys;
  to.aliases.assign(from.model_alias.begin(), from.model_alias.end());
  to.threads_http = from.n_threads_http;
  to.sse_ping_interval_s = from.sse_ping_interval;
  to.endpoint_slots = from.endpoint_slots;
  to.cache_prompt = from.cache_prompt;
  to.n_predict = from.n_predict;
  to.verbosity = from.verbosity;
  const common_params_model& model = from.model;
  to.has_model = !model.path.empty() || !model.url.empty() || !model.hf_repo.empty() || !model.docker_repo.empty();
  return to;
}

void LlamaConfig::set_model_path(std::string path) { params_->model.path = std::move(path); }

}  // namespace coppice::engine
