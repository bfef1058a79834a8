#include "app/template_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <sstream>
#include <string_view>
#include <utility>

#include "app/config.h"
#include "base/json.h"
#include "base/json_text.h"
#include "chat/llama_templates.h"
#include "chat/template_drift.h"
#include "engine/llama_log.h"
#include "engine/model_template.h"

namespace coppice::app {
namespace {

using chat::Drift;
using chat::NextStep;
using chat::Reasoning;
using chat::TemplateDrift;

constexpr int kFailed = 1, kBadUsage = 2;
constexpr const char* kTemplateAbout =
    "Shows whether the prompt of a conversation's next turn goes on from what was computed for the turn before,\n"
    "or whether the model's chat template renders the past anew, so that it would be computed again.\n"
    "Exit status: 0 shown, 1 the template cannot be used, 2 wrong usage.";

struct Options {
  std::string model, file;
  bool json = false;
};

struct Source {
  std::string name;  // for people
  engine::ModelTemplate text;
};

Result<std::string> read_file(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return invalid(path + ": this is a folder");
  std::ifstream in(path, std::ios::binary);
  if (!in) return invalid(path + ": " + std::strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Result<Source> find_source(const Options& options) {
  Source out;
  if (options.file.empty() || !options.model.empty()) {
    auto path = options.model.empty() ? find_built_in_model() : Result<std::string>(options.model);
    if (!path) return std::unexpected(path.error());
    auto text = engine::read_model_template(*path);
    if (!text) return std::unexpected(text.error());
    out = {*path, *std::move(text)};
  }
  if (!options.file.empty()) {
    auto text = read_file(options.file);
    if (!text) return std::unexpected(text.error());
    out.name = options.file;
    out.text.source = *std::move(text);
  }
  if (out.text.source.empty()) out.name += " (it has no template; llama.cpp's chatml is used)";
  return out;
}

std::string_view name(NextStep step) { return step == NextStep::tool_result ? "tool_result" : "user_message"; }
std::string_view words(NextStep step) {
  return step == NextStep::tool_result ? "results of a tool call" : "a message of the user";
}
std::string_view name(Reasoning reasoning) {
  switch (reasoning) {
    case Reasoning::sent_back: return "sent_back";
    case Reasoning::not_sent_back: return "not_sent_back";
    case Reasoning::none: return "none";
  }
  return "";
}
std::string_view words(Reasoning reasoning) {
  switch (reasoning) {
    case Reasoning::sent_back: return "reasoning sent back";
    case Reasoning::not_sent_back: return "not sent back";
    case Reasoning::none: return "no reasoning";
  }
  return "";
}

std::string verdict(const Drift& drift) {
  if (!drift.rendered) return "not taken";
  if (drift.survives) return "survives";
  return fmt::format("parts at {} %", drift.held_bytes == 0 ? 0 : 100 * drift.kept_bytes / drift.held_bytes);
}

// One line, with its line breaks and quotes shown as they stand in JSON.
std::string quoted(const std::string& text) { return to_text(Json(text)); }

std::string where_they_part(const TemplateDrift& drift) {
  std::string out;
  for (const NextStep step : chat::kNextSteps) {
    for (const Reasoning reasoning : chat::kReasonings) {
      const Drift& found = drift.at(step, reasoning);
      if (!found.rendered || found.survives) continue;
      out += fmt::format("\nBefore {}, {}: after {} of {} bytes\n  behind    {}\n  computed  {}\n  next      {}\n",
                         words(step), words(reasoning), found.kept_bytes, found.held_bytes, quoted(found.before),
                         quoted(found.held), quoted(found.next));
    }
  }
  return out.empty() ? out
                     : "\nWhere the next prompt parts from what was computed (of a short sample conversation):\n" + out;
}

std::string what_is_done(const TemplateDrift& drift) {
  const bool calls = drift.drifts(NextStep::tool_result, true), answers = drift.drifts(NextStep::user_message, true);
  std::string out = "\nWhat coppice serve does:\n";
  const bool lost = chat::kNextSteps.end() != std::ranges::find_if(chat::kNextSteps, [&](NextStep step) {
                      const Drift& found = drift.at(step, Reasoning::not_sent_back);
                      return found.rendered && !found.survives;
                    });
  if (lost) {
    out +=
        "  Reasoning that a client does not send back is put back into the answers that the server remembers\n"
        "  (--exact-continuation), so that the second column becomes the first.\n";
  }
  if (!calls && !answers)
    return out + "  Nothing else is needed: --idle-prefill auto prepares nothing with this template.\n";
  out += fmt::format(
      "  After {} it computes the beginning of the next prompt while nothing else is to be done\n"
      "  (--idle-prefill auto), so that what is computed while somebody waits is what is new.\n",
      calls && answers ? "every answer and every tool call"
      : calls          ? "every tool call"
                       : "every answer");
  return out;
}

std::string table(const TemplateDrift& drift) {
  std::string out = fmt::format("{:<24}", "What comes next");
  for (const Reasoning reasoning : chat::kReasonings) out += fmt::format("  {:<19}", words(reasoning));
  for (const NextStep step : chat::kNextSteps) {
    out += fmt::format("\n{:<24}", words(step));
    for (const Reasoning reasoning : chat::kReasonings)
      out += fmt::format("  {:<19}", verdict(drift.at(step, reasoning)));
  }
  return out + '\n';
}

Json drift_json(const Source& source, const TemplateDrift& drift) {
  Json cases = Json::array();
  for (const NextStep step : chat::kNextSteps) {
    for (const Reasoning reasoning : chat::kReasonings) {
      const Drift& found = drift.at(step, reasoning);
      Json one = {{"next", name(step)}, {"reasoning", name(reasoning)}, {"rendered", found.rendered}};
      if (found.rendered) {
        one["survives"] = found.survives;
        one["computed_bytes"] = found.held_bytes;
        one["kept_bytes"] = found.kept_bytes;
      }
      if (found.rendered && !found.survives) {
        one["before"] = found.before;
        one["computed"] = found.held;
        one["next_prompt"] = found.next;
      }
      cases.push_back(std::move(one));
    }
  }
  return {{"template", source.name},
          {"cases", std::move(cases)},
          {"idle_prefill_auto",
           {{"after_tool_calls", drift.drifts(NextStep::tool_result, true)},
            {"after_answers", drift.drifts(NextStep::user_message, true)}}}};
}

int show(const Options& options, std::ostream& out, std::ostream& err) {
  const auto refuse = [&](const Error& error) {
    err << "coppice: " << error.message << '\n';
    return kFailed;
  };
  const auto source = find_source(options);
  if (!source) return refuse(source.error());
  const auto templates =
      chat::make_probe_templates(source->text.source, source->text.bos_token, source->text.eos_token);
  if (!templates) return refuse(templates.error());
  const TemplateDrift drift = chat::probe_drift(**templates);
  if (options.json) {
    out << to_text(drift_json(*source, drift)) << '\n';
  } else {
    out << "Template of " << source->name << "\n\n" << table(drift) << where_they_part(drift) << what_is_done(drift);
  }
  return 0;
}

}  // namespace

int run_template(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  Options options;
  try {
    CLI::App app(kTemplateAbout, "coppice template");
    app.add_option("-m,--model", options.model, "the model, a GGUF file (default: the built-in one)")
        ->type_name("FILE");
    app.add_option("--chat-template-file", options.file, "this template instead of the model's own")->type_name("FILE");
    app.add_flag("--json", options.json, "for scripts: one JSON object");
    try {
      app.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // reversed, as CLI11 wants them
    } catch (const CLI::CallForHelp&) {
      out << app.help();
      return 0;
    } catch (const CLI::ParseError& error) {
      err << "coppice: " << error.what() << "\nSee: coppice template --help\n";
      return kBadUsage;
    }
  } catch (const CLI::Error& error) {
    err << "coppice: " << error.what() << '\n';
    return kFailed;
  }
  return show(options, out, err);
}

}  // namespace coppice::app
