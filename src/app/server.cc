#include "app/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>

#include "api/router.h"
#include "app/banner.h"
#include "app/cache_tiers.h"
#include "app/loading_gate.h"
#include "app/progress.h"
#include "app/warm_pools.h"
#include "app/warm_sessions.h"
#include "base/clock.h"
#include "base/json.h"
#include "chat/llama_templates.h"
#include "chat/template_drift.h"
#include "engine/llama_log.h"
#include "engine/llama_model.h"
#include "engine/llama_runner.h"
#include "net/server.h"
#include "obs/log.h"
#include "obs/metrics.h"
#include "sched/engine_loop.h"

namespace coppice::app {
namespace {

// After the engine has ended every request, for the last bytes to reach their clients.
constexpr std::chrono::milliseconds kLastBytes{2000};

void route_llama_log(std::int32_t verbosity) {
  engine::set_log_sink([verbosity](engine::LogLevel level, std::string_view line) {
    switch (level) {
      case engine::LogLevel::error: obs::log_error("llama.cpp", "{}", line); break;
      case engine::LogLevel::warn:
        if (verbosity >= 2) obs::log_warn("llama.cpp", "{}", line);
        break;
      case engine::LogLevel::info:
        if (verbosity >= 4) obs::log_debug("llama.cpp", "{}", line);
        break;
      case engine::LogLevel::debug:
        if (verbosity >= 5) obs::log_debug("llama.cpp", "{}", line);
        break;
    }
  });
}

std::string model_id(const Config& config, const engine::LlamaModel::Summary& model) {
  if (!config.aliases.empty()) return config.aliases.front();
  return std::filesystem::path(model.path).stem().string();
}

api::ModelFacts model_facts(const Config& config, const engine::LlamaModel::Summary& model) {
  api::ModelFacts facts;
  facts.id = model_id(config, model);
  facts.path = model.path;
  facts.aliases = config.aliases;
  facts.architecture = model.architecture;
  facts.description = model.description;
  facts.build = "coppice " COPPICE_VERSION " (llama.cpp " COPPICE_LLAMA_VERSION ")";
  facts.n_params = model.n_params;
  facts.file_bytes = model.file_bytes;
  facts.n_ctx = model.n_ctx;
  facts.n_ctx_train = model.n_ctx_train;
  facts.n_vocab = model.n_vocab;
  facts.n_embd = model.n_embd;
  facts.n_slots = config.n_slots;
  facts.bos_token = model.bos_token;
  facts.eos_token = model.eos_token;
  facts.created_unix_s = std::time(nullptr);
  return facts;
}

BannerFacts banner_facts(const Config& config, const engine::LlamaModel::Summary& model, std::uint16_t port) {
  BannerFacts facts;
  facts.version = COPPICE_VERSION;
  facts.model_name = model.name;
  facts.model_path = model.path;
  facts.architecture = model.architecture;
  facts.model_id = model_id(config, model);
  facts.n_params = model.n_params;
  facts.model_bytes = model.file_bytes;
  facts.kv_bytes = model.kv_bytes;
  facts.n_ctx = model.n_ctx;
  facts.n_ctx_train = model.n_ctx_train;
  facts.n_slots = config.n_slots;
  facts.n_threads = model.n_threads;
  facts.devices = model.devices;
  facts.host = config.host;
  facts.port = port;
  facts.built_in_model = config.built_in_model;
  facts.needs_key = !config.api_keys.empty();
  return facts;
}

net::ServerOptions net_options(const Config& config) {
  net::ServerOptions options;
  options.host = config.host;
  options.port = config.port;
  options.threads = config.threads_http;
  options.body_bytes_max = config.body_bytes_max;
  options.connections_max = config.connections_max;
  options.stream_buffer_bytes_max = config.stream_buffer_bytes_max;
  return options;
}

Result<std::unique_ptr<engine::LlamaModel>> load_model(const Config& config, engine::LlamaConfig llama,
                                                       const Clock& clock, const Signals& signals) {
  Progress progress(std::cerr, clock, ::isatty(STDERR_FILENO) == 1);
  engine::LoadOptions options;
  options.backend_dir = COPPICE_BACKEND_DIR;
  options.n_slots = config.n_slots;
  options.n_sequences = config.n_sequences;
  options.on_progress = [&](float share) {
    progress.show(share);
    return !signals.interrupted();
  };
  auto model = engine::LlamaModel::load(std::move(llama), options);
  progress.finish();
  return model;
}

api::IdlePrefill idle_prefill(const Config& config, const engine::LlamaModel& model) {
  if (config.idle_prefill == IdlePrefillMode::off) return {};
  if (config.idle_prefill == IdlePrefillMode::on) return {.allowed = true, .after_calls = true, .after_answers = true};
  const auto templates = chat::make_probe_templates(model);
  if (!templates) return {.allowed = true};  // which cannot be, as the server's own could be made
  const chat::TemplateDrift drift = chat::probe_drift(**templates);
  const auto drifts = [&](chat::NextStep step) { return drift.drifts(step, config.exact_continuation); };
  const api::IdlePrefill out{.allowed = true,
                             .after_calls = drifts(chat::NextStep::tool_result),
                             .after_answers = drifts(chat::NextStep::user_message)};
  obs::log_info("idle prefill", "after_tool_calls={} after_answers={}", out.after_calls, out.after_answers);
  return out;
}

// Everything above the model. Members are built top to bottom and go bottom to top, each before what it refers to.
class Layers {
 public:
  Layers(const Config& config, engine::LlamaModel& model, std::unique_ptr<chat::Templates> templates,
         std::unique_ptr<engine::Runner> runner, CacheTiers tiers, Waker& waker, const Clock& clock,
         obs::Metrics& metrics)
      : waker_(waker),
        tiers_(std::move(tiers)),
        turns_({.bytes_max = config.turn_memory_bytes_max}),
        tokenizer_(engine::make_llama_tokenizer(model)),
        samplers_(engine::make_llama_sampler_factory(model)),
        templates_(std::move(templates)),
        loop_(scheduler_options(config, tiers_), std::move(runner), *tokenizer_, clock, metrics),
        router_(services(config, model, metrics)) {
    waker_.set([this] { loop_.wake(); });
  }
  ~Layers() { waker_.set(nullptr); }
  Layers(const Layers&) = delete;
  Layers& operator=(const Layers&) = delete;

  sched::EngineLoop& loop() { return loop_; }
  api::Router& router() { return router_; }
  sched::TierOptions tier_options() const { return tiers_.options(); }

 private:
  static sched::SchedulerOptions scheduler_options(const Config& config, const CacheTiers& tiers) {
    sched::SchedulerOptions options;
    options.n_slots = config.n_slots;
    options.slot_prompt_similarity = config.slot_prompt_similarity;
    options.step_tokens_max = config.prefill_chunk;
    options.queue_limit = config.queue_limit;
    options.overtake_limit = config.overtake_limit;
    options.tier = tiers.options();
    return options;
  }

  api::Services services(const Config& config, const engine::LlamaModel& model, obs::Metrics& metrics) {
    api::Services services{.tokenizer = *tokenizer_,
                           .samplers = *samplers_,
                           .templates = *templates_,
                           .engine = loop_,
                           .metrics = metrics,
                           .model = model_facts(config, model.summary()),
                           .limits = {},
                           .api_keys = config.api_keys};
    if (tiers_.tiers) services.namespace_secret = tiers_.tiers->secret();
    services.limits.sse_ping_interval_s = config.sse_ping_interval_s;
    services.limits.stored_responses_bytes_max = config.response_store_bytes_max;
    services.default_n_predict = config.default_n_predict;
    services.default_cache_prompt = config.default_cache_prompt;
    services.endpoint_slots = config.endpoint_slots;
    services.endpoint_metrics = config.endpoint_metrics;
    services.session_inference = config.session_inference;
    services.turns = &turns_;
    services.exact_continuation = config.exact_continuation;
    services.idle_prefill = idle_prefill(config, model);
    return services;
  }

  Waker& waker_;
  CacheTiers tiers_;  // before the loop, whose scheduler holds leases
  session::TurnMemory turns_;
  std::unique_ptr<engine::Tokenizer> tokenizer_;
  std::unique_ptr<engine::SamplerFactory> samplers_;
  std::unique_ptr<chat::Templates> templates_;
  sched::EngineLoop loop_;
  api::Router router_;
};

// Agents put system messages into the middle of conversations, and templates differ in what they make of them.
void log_late_system(const chat::LateSystemFacts& facts) {
  const auto words =
      fmt::format("template={} rendered_as={} in_place={}", facts.native, facts.rendered, facts.in_place);
  if (facts.in_place) {
    obs::log_info("late system messages", "{}", words);
  } else {
    obs::log_warn("late system messages", "{}: they change the prompt at another place than they were put", words);
  }
}

int report(const Error& error) {
  fmt::print(stderr, "coppice: {}\n", error.message);
  return 1;
}

void serve_until_signal(const Config& config, Layers& layers, Signals& signals) {
  signals.wait();
  const std::size_t running = [&] {
    std::size_t busy = 0;
    for (const sched::SlotInfo& slot : layers.loop().snapshot().slots) busy += slot.busy ? 1 : 0;
    return busy;
  }();
  obs::log_info("stopping", "running={} grace_s={}", running, config.shutdown_grace_s);
  layers.loop().stop(std::chrono::seconds(config.shutdown_grace_s));
}

}  // namespace

int run_server(const Config& config, engine::LlamaConfig llama, Signals& signals) {
  obs::init_log(config.log_level);
  route_llama_log(config.llama_verbosity);
  const SteadyClock clock;
  obs::Metrics metrics;
  LoadingGate gate;

  auto pool_file = config.pool_file.empty() ? Result<std::vector<Json>>{} : load_pool_file(config.pool_file);
  if (!pool_file) return report(pool_file.error());
  auto server = net::Server::listen(net_options(config), gate, &metrics);
  if (!server) return report(server.error());
  (*server)->start();

  Waker waker;
  auto opened = open_tiers(config, clock, metrics, waker);
  if (!opened) return report(opened.error());
  auto model = load_model(config, std::move(llama), clock, signals);
  if (!model) {
    if (signals.interrupted()) return 128 + signals.received();
    return report(model.error());
  }
  auto templates = chat::make_llama_templates(**model);
  if (!templates) return report(templates.error());
  log_late_system((*templates)->late_system());

  auto runner = engine::make_llama_runner(**model);
  auto tiers = tiers_for(*std::move(opened), **model, runner->info());
  if (!tiers) return report(tiers.error());
  Layers layers(config, **model, std::move(*templates), std::move(runner), *std::move(tiers), waker, clock, metrics);
  auto pools = api::read_pools(*pool_file, layers.router().context()->services);
  if (!pools) {
    return report({pools.error().kind, "--pool " + config.pool_file + ": " + pools.error().message, {}});
  }

  const auto kept_pools = sched::pool_records(layers.tier_options());
  layers.loop().start();
  // First in line, before any client.
  if (auto started = start_warm_pools(*layers.router().context(), *pools, kept_pools); !started)
    return report(started.error());
  if (config.idle_prefill != IdlePrefillMode::off) start_warm_sessions(*layers.router().context());
  gate.open(layers.router());
  std::cout << banner(banner_facts(config, (*model)->summary(), (*server)->port())) << std::flush;

  serve_until_signal(config, layers, signals);
  (*server)->stop(kLastBytes);
  tier::Stalls stalls;
  layers.loop().inspect([&](sched::Inspector& engine) { stalls = engine.tier_stats().stalls; });
  obs::log_info("stopped", "signal={} save_worst_ms={:.1f} restore_worst_ms={:.1f}", signals.received(),
                to_ms(stalls.save_worst), to_ms(stalls.restore_worst));
  return 0;
}

}  // namespace coppice::app
