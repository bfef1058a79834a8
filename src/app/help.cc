#include "app/help.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>
#include <vector>

#include "app/llama_rulings.h"
#include "app/own_flags.h"

namespace coppice::app {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 6;

// One option: its names on a line, what it does indented below.
std::string entry(std::string_view names, std::string_view env, std::string_view default_text, std::string_view help) {
  std::string out = fmt::format("  {}", names);
  if (!default_text.empty()) out += fmt::format("   (default: {})", default_text);
  if (!env.empty()) out += fmt::format("   [{}]", env);
  out += '\n';
  std::istringstream lines{std::string(help)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string row(kIndent, ' ');
    for (std::string word; words >> word;) {
      if (row.size() > kIndent && row.size() + 1 + word.size() > kWidth) {
        out += row + '\n';
        row.assign(kIndent, ' ');
      }
      if (row.size() > kIndent) row += ' ';
      row += word;
    }
    if (row.size() > kIndent) out += row + '\n';
  }
  return out;
}

std::string names_of(const OwnFlag& flag) {
  std::string names = fmt::format("{}", fmt::join(flag.names, ", "));
  if (!flag.negation.empty()) names += fmt::format(", {}", flag.negation);
  if (flag.takes_value()) names += fmt::format(" {}", flag.value_hint);
  return names;
}

// llama.cpp's options that a newcomer needs, in our words.
struct Familiar {
  std::string_view names, env, default_text, help;
};
constexpr Familiar kFamiliar[] = {
    {"-m, --model FILE", "LLAMA_ARG_MODEL", "the built-in test model", "The model, a GGUF file."},
    {"-hf, --hf-repo USER/MODEL[:QUANT]", "LLAMA_ARG_HF_REPO", "", "Download the model from Hugging Face, once."},
    {"-c, --ctx-size N", "LLAMA_ARG_CTX_SIZE", "what the model was trained for, at most 131072",
     "KV cells: the tokens that all requests together can hold. Less is taken where memory is short; 0 takes the "
     "trained "
     "length whatever it costs."},
    {"-np, --parallel N", "LLAMA_ARG_N_PARALLEL", "4", "Slots: requests that run at once. More wait in the queue."},
    {"-t, --threads N", "LLAMA_ARG_THREADS", "the physical cores", "Threads that compute."},
    {"-ngl, --gpu-layers N", "LLAMA_ARG_N_GPU_LAYERS", "as many as fit", "Layers to put on the GPU."},
    {"-ctk, -ctv, --cache-type-k TYPE, --cache-type-v TYPE", "LLAMA_ARG_CACHE_TYPE_K, _V", "f16",
     "Number format of the KV cells; q8_0 halves their memory."},
};
constexpr Familiar kFamiliarServing[] = {
    {"--host ADDRESS", "LLAMA_ARG_HOST", "127.0.0.1", "Where to listen. 0.0.0.0 lets other machines in."},
    {"--port N", "LLAMA_ARG_PORT", "8080", "0 takes a free port; the start-up text names it."},
    {"--api-key KEY[,KEY...], --api-key-file FILE", "LLAMA_API_KEY", "none needed", "Keys that clients must send."},
    {"-a, --alias NAME", "LLAMA_ARG_ALIAS", "the file's name", "The model's name for clients."},
    {"-sps, --slot-prompt-similarity RATIO", "", "0.10",
     "How much of a prompt an idle slot must hold already to be chosen for it; 0 turns this rule off."},
    {"--threads-http N", "LLAMA_ARG_THREADS_HTTP", "half the cores", "Threads that talk to clients."},
    {"--sse-ping-interval SECONDS", "LLAMA_ARG_SSE_PING_INTERVAL", "30",
     "A sign of life on streams that are silent; -1: none."},
    {"--no-slots", "LLAMA_ARG_ENDPOINT_SLOTS", "", "Do not serve /slots, which shows what runs."},
};

std::string group(std::string_view name) {
  std::string out;
  for (const OwnFlag& flag : own_flags()) {
    if (flag.group == name) out += entry(names_of(flag), flag.env, flag.default_text, flag.help);
  }
  return out;
}

}  // namespace

std::string version_text() { return "coppice " COPPICE_VERSION " (llama.cpp " COPPICE_LLAMA_VERSION ")\n"; }

std::string program_help() {
  return "Coppice serves a language model to agents, and never computes a prompt token twice whose KV it still holds.\n"
         "\n"
         "  coppice serve                        serve the built-in test model on http://127.0.0.1:8080\n"
         "  coppice serve -m MODEL.gguf          serve a model of yours\n"
         "  coppice serve --help                 all options\n"
         "  coppice template -m MODEL.gguf       whether its chat template lets conversations go on from what is held\n"
         "  coppice cache --help                 look into a folder of --cache-disk, check it, prune it, carry it "
         "along\n"
         "  coppice --version\n";
}

std::string serve_help() {
  std::string out =
      "coppice serve: an HTTP server for one model, with the APIs of OpenAI and of llama-server.\n"
      "\n"
      "Type first:\n"
      "  coppice serve                              the built-in test model, to see that everything works\n"
      "  coppice serve -m MODEL.gguf                a model of yours\n"
      "  coppice serve -hf USER/MODEL -c 65536      download one; 65,536 tokens of context for all requests together\n"
      "  coppice serve -m MODEL.gguf -np 8          eight requests at once\n"
      "Then follow the curl line that it prints, or point an agent at http://127.0.0.1:8080/v1.\n"
      "\n"
      "Model and memory\n";
  for (const Familiar& f : kFamiliar) out += entry(f.names, f.env, f.default_text, f.help);
  out += "\nServing\n";
  for (const Familiar& f : kFamiliarServing) out += entry(f.names, f.env, f.default_text, f.help);
  out += group("Serving");
  out += "\nCache (a SIZE is bytes, or like 512MiB, 8GiB)\n" + group("Cache");
  out += "\nLimits\n" + group("Limits");
  out += "\nInformation\n" + group("Information");
  out +=
      "\nAll of llama-server's options for the model, devices, context, KV, templates, adapters and sampling work "
      "too,\n"
      "with the same names and LLAMA_ARG_* variables: coppice serve --help-llama lists them.\n"
      "An option given on the command line wins over a variable in [brackets].\n";
  return out;
}

std::string llama_help() {
  std::string out = "llama.cpp's options that work here, in llama.cpp's words (version " COPPICE_LLAMA_VERSION ").\n";
  const auto section = [&](std::string_view title, bool sampling) {
    out += fmt::format("\n{}\n", title);
    for (const engine::LlamaOption& option : engine::llama_options()) {
      const Ruling* ruling = find_ruling(option.names.front());
      if (ruling == nullptr || ruling->fate != Fate::kept || option.sampling != sampling) continue;
      std::vector<std::string> spellings = option.names;
      spellings.insert(spellings.end(), option.negations.begin(), option.negations.end());
      std::string names = fmt::format("{}", fmt::join(spellings, ", "));
      if (!option.value_hint.empty()) names += " " + option.value_hint;
      out += entry(names, "", "", option.help);  // the help names the variable
    }
  };
  section("Model, devices, context, templates, server", false);
  section("Sampling defaults", true);
  return out;
}

}  // namespace coppice::app
