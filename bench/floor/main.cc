// coppice-floor: llama.cpp alone, without a server. Reads one JSON object a line,
// {"prefix","fresh","decode","streams"}, makes `prefix` tokens resident, then times `fresh` further ones and the greedy
// decoding of `decode` in each of `streams` sequences, and answers {"first_ms","tokens_per_s"}. The prefix stays for
// the next line.
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <llama.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Options {
  std::string model;
  int threads = 2, cells = 8192, sequences = 1;
};

// Threads that wait for work between two calls, as servers keep them; without, each call would start its own.
class Threads {
 public:
  explicit Threads(int n) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (device == nullptr) throw std::runtime_error("there is no CPU backend");
    ggml_backend_reg_t backend = ggml_backend_dev_backend_reg(device);
    const auto make = procedure<decltype(ggml_threadpool_new)>(backend, "ggml_threadpool_new");
    free_ = procedure<decltype(ggml_threadpool_free)>(backend, "ggml_threadpool_free");
    ggml_threadpool_params params = ggml_threadpool_params_default(n);
    pool_ = make(&params);
    if (pool_ == nullptr) throw std::runtime_error("cannot start threads");
  }
  ~Threads() { free_(pool_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  ggml_threadpool_t get() const { return pool_; }

 private:
  // Backends are loaded at run time, so their functions are found by name.
  template <class F>
  static F* procedure(ggml_backend_reg_t backend, const char* name) {
    void* address = ggml_backend_reg_get_proc_address(backend, name);
    if (address == nullptr) throw std::runtime_error(std::string("the CPU backend has no ") + name);
    return reinterpret_cast<F*>(address);
  }

  ggml_threadpool_t pool_ = nullptr;
  decltype(ggml_threadpool_free)* free_ = nullptr;
};

class Floor {
 public:
  explicit Floor(const Options& options) : n_sequences_(options.sequences), threads_(options.threads) {
    model_.reset(llama_model_load_from_file(options.model.c_str(), llama_model_default_params()));
    if (!model_) throw std::runtime_error("cannot load " + options.model);
    llama_context_params params = llama_context_default_params();  // batch sizes as a server's: 2048, 512
    params.n_ctx = static_cast<std::uint32_t>(options.cells);
    params.n_threads = params.n_threads_batch = options.threads;
    params.n_seq_max = static_cast<std::uint32_t>(options.sequences);
    params.kv_unified = true;
    context_.reset(llama_init_from_model(model_.get(), params));
    if (!context_) throw std::runtime_error("cannot make a context of " + std::to_string(options.cells) + " cells");
    llama_attach_threadpool(context_.get(), threads_.get(), threads_.get());
    batch_ = llama_batch_init(static_cast<std::int32_t>(llama_n_batch(context_.get())), 0, 1);
    n_vocab_ = llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
  }
  ~Floor() { llama_batch_free(batch_); }
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;

  Json measure(const Json& point) {
    const int prefix = point.value("prefix", 0), fresh = point.value("fresh", 1);
    const int decode = point.value("decode", 1), streams = point.value("streams", 1);
    if (prefix < 0 || fresh < 1 || decode < 1 || streams < 1 || streams > n_sequences_) {
      return {{"error", "out of range"}};
    }
    hold(prefix);
    llama_memory_t memory = llama_get_memory(context_.get());
    for (int s = 1; s < streams; ++s) llama_memory_seq_cp(memory, 0, s, 0, prefix);
    llama_synchronize(context_.get());

    const auto start = Clock::now();
    for (int s = 0; s < streams; ++s) evaluate(s, prefix, fresh, true);
    const double first_ms = ms_since(start);
    const double decode_ms =
        streams == 1 ? step_alone(prefix + fresh, decode) : step_all(prefix + fresh, decode, streams);
    for (int s = 0; s < streams; ++s) llama_memory_seq_rm(memory, s, s == 0 ? prefix : 0, -1);
    return {{"first_ms", first_ms}, {"tokens_per_s", decode > 1 ? streams * (decode - 1) * 1000.0 / decode_ms : 0.0}};
  }

 private:
  // Sequence 0 holds exactly `n` tokens from here on.
  void hold(int n) {
    llama_memory_t memory = llama_get_memory(context_.get());
    if (held_ > n) llama_memory_seq_rm(memory, 0, n, -1);
    if (held_ < n) evaluate(0, held_, n - held_, false);
    held_ = n;
  }

  // As many tokens as in one batch of a server's; the logits of the last if they are wanted, and the best token.
  void evaluate(int sequence, int from, int n, bool logits) {
    const int most = static_cast<int>(llama_n_batch(context_.get()));
    for (int done = 0; done < n; done += batch_.n_tokens) {
      batch_.n_tokens = 0;
      const int here = std::min(most, n - done);
      for (int i = 0; i < here; ++i) add(sequence, from + done + i, logits && done + i + 1 == n);
      decode_batch();
    }
    if (logits) best(batch_.n_tokens - 1);
  }

  double step_alone(int from, int n) { return step_all(from, n, 1); }

  // n - 1 further tokens in each stream: the first one came with the prompt.
  double step_all(int from, int n, int streams) {
    const auto start = Clock::now();
    for (int i = 0; i + 1 < n; ++i) {
      batch_.n_tokens = 0;
      for (int s = 0; s < streams; ++s) add(s, from + i, true);
      decode_batch();
      for (int s = 0; s < streams; ++s) best(s);
    }
    return ms_since(start);
  }

  void add(int sequence, int position, bool logits) {
    const int i = batch_.n_tokens++;
    batch_.token[i] = n_vocab_ / 4 + static_cast<int>((position * 2654435761U) % static_cast<unsigned>(n_vocab_ / 2));
    batch_.pos[i] = position;
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = sequence;
    batch_.logits[i] = logits;
  }

  void decode_batch() {
    if (llama_decode(context_.get(), batch_) != 0) throw std::runtime_error("llama_decode failed: too few cells?");
  }

  // Greedy sampling: the least that has to be done with logits.
  void best(int i) {
    const float* logits = llama_get_logits_ith(context_.get(), i);
    best_ = static_cast<int>(std::max_element(logits, logits + n_vocab_) - logits);
  }

  int n_sequences_;
  Threads threads_;
  std::unique_ptr<llama_model, decltype(&llama_model_free)> model_{nullptr, llama_model_free};
  std::unique_ptr<llama_context, decltype(&llama_free)> context_{nullptr, llama_free};
  llama_batch batch_{};
  int n_vocab_ = 0, held_ = 0;
  volatile int best_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App app("Times llama.cpp alone: one JSON object a line in, one out.");
  app.add_option("--model", options.model)->required();
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber);
  app.add_option("--cells", options.cells)->check(CLI::PositiveNumber);
  app.add_option("--sequences", options.sequences)->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);
  ggml_backend_load_all_from_path(COPPICE_BACKEND_DIR);
  Floor floor(options);
  for (std::string line; std::getline(std::cin, line);) {
    const Json point = Json::parse(line, nullptr, false);
    std::cout << (point.is_object() ? floor.measure(point) : Json{{"error", "no JSON object"}}).dump() << std::endl;
  }
  return 0;
} catch (const std::exception& e) {
  std::cerr << "coppice-floor: " << e.what() << "\n";
  return 1;
}
