// make_models: writes random-weight test models, one GGUF per architecture.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <expected>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "model_plan.h"
#include "model_writer.h"

namespace {

using namespace coppice::tools;  // NOLINT(google-build-using-namespace): this is the tools' own program

constexpr std::string_view usage =
    R"(Usage: make_models --out DIR [--arch NAME[,NAME...]|all] [--size NAME] [--seed N] [--template FILE] [--tokenizer FILE]

Writes DIR/ARCH.gguf, or DIR/ARCH-STEM.gguf with --template STEM.jinja: models with random weights for tests.

  --out DIR         where to write; made if it is not there
  --arch NAMES      qwen3, gpt-oss, gemma3, deepseek2, qwen35, lfm2, mamba2 (default: all)
  --size NAME       tiny (a few MB) or small (up to about 150 MB); for benchmarks 600k, 5m, 60m, 600m (parameters, of qwen3, in
                    Q8_0: a byte each) (default: tiny)
  --seed N          another seed gives other weights (default: 1)
  --template FILE   chat template in place of the tokenizer's
  --tokenizer FILE  GGUF to take the vocabulary from (default: the built-in model)
)";

struct Options {
  std::filesystem::path out;
  std::vector<const Architecture*> architectures;
  const ModelSize* size = find_model_size("tiny");
  std::uint64_t seed = 1;
  std::filesystem::path template_file;
  std::filesystem::path tokenizer = COPPICE_DEMO_MODEL;
};

using Status = std::expected<void, std::string>;

Status set_architectures(Options& options, const std::string& names) {
  options.architectures.clear();
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "all") {
      for (const Architecture& a : architectures()) options.architectures.push_back(&a);
    } else if (const Architecture* a = find_architecture(name)) {
      options.architectures.push_back(a);
    } else {
      return std::unexpected("unknown architecture: " + name);
    }
  }
  return {};
}

Status set_seed(Options& options, const std::string& text) {
  char* end = nullptr;
  options.seed = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') return std::unexpected("--seed wants a number, not " + text);
  return {};
}

Status set_option(Options& options, std::string_view flag, const std::string& value) {
  if (flag == "--out") return options.out = value, Status{};
  if (flag == "--template") return options.template_file = value, Status{};
  if (flag == "--tokenizer") return options.tokenizer = value, Status{};
  if (flag == "--arch") return set_architectures(options, value);
  if (flag == "--seed") return set_seed(options, value);
  if (flag == "--size") {
    options.size = find_model_size(value);
    return options.size != nullptr ? Status{} : std::unexpected("unknown size: " + value);
  }
  return std::unexpected("unknown option: " + std::string(flag));
}

std::expected<Options, std::string> parse(const std::vector<std::string>& args) {
  Options options;
  for (const Architecture& a : architectures()) options.architectures.push_back(&a);
  for (std::size_t i = 0; i < args.size(); i += 2) {
    if (i + 1 == args.size()) return std::unexpected(args[i] + " wants a value");
    if (Status s = set_option(options, args[i], args[i + 1]); !s) return std::unexpected(s.error());
  }
  if (options.out.empty()) return std::unexpected("--out is missing");
  return options;
}

Status write_all(const Options& options) {
  std::string chat_template, suffix;
  if (!options.template_file.empty()) {
    std::ifstream in(options.template_file, std::ios::binary);
    chat_template.assign(std::istreambuf_iterator<char>(in), {});
    if (chat_template.empty()) return std::unexpected("cannot read " + options.template_file.string());
    suffix = "-" + options.template_file.stem().string();
  }
  std::filesystem::create_directories(options.out);
  for (const Architecture* a : options.architectures) {
    const std::filesystem::path file = options.out / (std::string(a->name) + suffix + ".gguf");
    const ModelRecipe recipe{a, options.size, options.seed, options.tokenizer, chat_template};
    if (Status s = write_model(recipe, file); !s) return s;
    std::cout << file.string() << ": " << std::filesystem::file_size(file) / 1024 << " KiB\n";
  }
  return {};
}

int fail(const std::string& message) {
  std::cerr << "make_models: " << message << "\n";
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args == std::vector<std::string>{"--help"}) return std::cout << usage, EXIT_SUCCESS;
  const std::expected<Options, std::string> options = parse(args);
  if (!options) return fail(options.error() + "\n" + std::string(usage));
  if (const Status s = write_all(*options); !s) return fail(s.error());
  return EXIT_SUCCESS;
} catch (const std::exception& e) {
  return fail(e.what());
}
