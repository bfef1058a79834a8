#include "app/llama_rulings.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <unordered_map>

#include "app/own_flags.h"
#include "engine/llama_config.h"

namespace coppice::app {
namespace {

using engine::LlamaOption;

std::unordered_map<std::string, const Ruling*> index_spellings() {
  std::unordered_map<std::string_view, const Ruling*> by_option;
  for (const Ruling& ruling : llama_rulings()) {
    for (std::string_view name : ruling.options) by_option[name] = &ruling;
  }
  const auto ruling_on = [&](std::string_view name) -> const Ruling* {
    auto found = by_option.find(name);
    return found == by_option.end() ? nullptr : found->second;
  };
  std::unordered_map<std::string, const Ruling*> by_spelling;
  for (const LlamaOption& option : engine::llama_options()) {
    const Ruling* positive = ruling_on(option.names.front());
    for (const std::string& name : option.names) by_spelling[name] = positive;
    if (option.negations.empty()) continue;
    const Ruling* negative = ruling_on(option.negations.front());
    for (const std::string& name : option.negations) by_spelling[name] = negative != nullptr ? negative : positive;
  }
  return by_spelling;
}

std::string with_dashes(std::string_view spelling) {
  std::string text(spelling);
  if (text.starts_with("--")) std::ranges::replace(text, '_', '-');
  return text;
}

// What a variable asks of an option: a spelling to judge and its value. Nothing: not set, or a switch that is off.
std::optional<std::pair<std::string, std::string>> asked_by_environment(const LlamaOption& option) {
  if (option.env.empty()) return std::nullopt;
  constexpr std::string_view prefix = "LLAMA_ARG_";
  if (!option.negations.empty() && option.env.starts_with(prefix)) {
    const std::string negated = "LLAMA_ARG_NO_" + option.env.substr(prefix.size());
    if (std::getenv(negated.c_str()) != nullptr) return std::pair{option.negations.front(), std::string{}};
  }
  const char* set = std::getenv(option.env.c_str());
  if (set == nullptr) return std::nullopt;
  const std::string value = set;
  if (option.n_values > 0) return std::pair{option.names.front(), value};
  const bool on = value == "1" || value == "true" || value == "on" || value == "enabled";
  if (on) return std::pair{option.names.front(), std::string{}};
  if (option.negations.empty()) return std::nullopt;
  return std::pair{option.negations.front(), std::string{}};
}

}  // namespace

const Ruling* find_ruling(std::string_view spelling) {
  static const auto by_spelling = index_spellings();
  auto found = by_spelling.find(with_dashes(spelling));
  return found == by_spelling.end() ? nullptr : found->second;
}

Result<Verdict> judge(std::string_view spelling, std::string_view value) {
  const Ruling* ruling = find_ruling(spelling);
  const std::string name(spelling);
  if (ruling == nullptr) return invalid("unknown option: " + name, name);
  switch (ruling->fate) {
    case Fate::kept: return Verdict{.pass_on = true, .note = {}};
    case Fate::ours: return Verdict{};
    case Fate::ignored: return Verdict{.pass_on = false, .note = name + " is ignored: " + std::string(ruling->reason)};
    case Fate::refused: break;
  }
  if (!value.empty() && value == ruling->harmless_value) return Verdict{};
  return invalid(name + ": " + std::string(ruling->reason), name);
}

Result<std::vector<std::string>> judge_environment() {
  std::vector<std::string> notes;
  for (const LlamaOption& option : engine::llama_options()) {
    const auto asked = asked_by_environment(option);
    if (!asked) continue;
    auto verdict = judge(asked->first, asked->second);
    // llama-server's variable for a flag that is ours: it must be a value that ours would take, too.
    if (const OwnFlag* own = find_own_flag(asked->first); verdict && own != nullptr && own->takes_value()) {
      Command scratch;
      if (auto done = own->apply(scratch, asked->second, true); !done) {
        verdict = invalid(asked->first + ": " + done.error().message);
      }
    }
    if (!verdict) {
      return invalid("the variable " + option.env + " is set, which stands for " + verdict.error().message, option.env);
    }
    if (!verdict->note.empty()) notes.push_back(option.env + ", " + verdict->note);
  }
  return notes;
}

}  // namespace coppice::app
