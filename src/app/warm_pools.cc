#include "app/warm_pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "api/prompts.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/json_text.h"
#include "obs/log.h"

namespace coppice::app {
namespace {

// Submits its requests one by one; it is the sink of each of them, and so lives as long as there is one.
// Threading: next() and the events of a request never run at once, as a request's events follow its submission and
// next() touches nothing after that.
class PoolChain final : public sched::EventSink, public std::enable_shared_from_this<PoolChain> {
 public:
  PoolChain(sched::Engine& engine, std::vector<sched::Request> requests)
      : engine_(engine), requests_(std::move(requests)) {}

  void next() {
    while (at_ < requests_.size()) {
      sched::Request request = std::move(requests_[at_++]);
      name_ = to_text(Json(request.make_pool->name));
      request.sink = shared_from_this();
      const auto submitted = engine_.submit(std::move(request));
      if (submitted) return;
      log_failure(submitted.error());
    }
  }

  void on_delta(sched::TextDelta) override {}

  void on_finished(sched::Finished finished) override {
    const sched::Report& report = finished.report;
    obs::log_info("pool ready", "name={} tokens={} computed={} reused={} prefill_ms={:.0f}", name_,
                  report.prompt_tokens, report.computed, report.reused(), to_ms(report.prefill));
    next();
  }

  void on_failed(Error error) override {
    log_failure(error);
    if (error.kind != ErrorKind::unavailable) next();
  }

 private:
  void log_failure(const Error& error) const {
    obs::log_error("pool failed", "name={} error={}", name_, error.message);
  }

  sched::Engine& engine_;
  std::vector<sched::Request> requests_;
  std::size_t at_ = 0;
  std::string name_;  // of the pool that is being made, quoted
};

}  // namespace

Result<std::vector<Json>> load_pool_file(const std::string& path) {
  const auto wrong = [&](const std::string& why) { return invalid(fmt::format("--pool {}: {}", path, why), "--pool"); };
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return wrong("this is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) return wrong(std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  auto pools = api::parse_pool_file(text.str());
  if (!pools) return wrong(pools.error().message);
  return pools;
}

Result<void> start_warm_pools(const api::Context& context, const std::vector<api::PoolFields>& pools,
                              const std::vector<sched::PoolRecord>& kept) {
  const api::Services& services = context.services;
  const std::vector<std::string> keys = services.api_keys.empty() ? std::vector<std::string>{""} : services.api_keys;
  std::vector<sched::Request> requests;
  const auto add = [&](std::shared_ptr<const Tokens> prompt, NamespaceId ns, sched::PoolSpec spec) -> Result<void> {
    auto sampler = services.samplers.make(Json::object(), {});
    if (!sampler) return std::unexpected(sampler.error());
    sched::Request& request = requests.emplace_back();
    request.id = services.engine.next_id();
    request.prompt = std::move(prompt);
    request.sampler = *std::move(sampler);
    request.placement.ns = ns;
    request.make_pool = std::move(spec);
    request.n_predict = 0;
    return {};
  };
  for (const api::PoolFields& pool : pools) {
    const auto prompt = std::make_shared<const Tokens>(pool.tokens);
    for (const std::string& key : keys) {
      auto added = add(prompt, context.keyring.namespace_of(key, pool.cache_salt), pool.spec);
      if (!added) return added;
    }
  }
  for (const sched::PoolRecord& pool : kept) {
    const bool replaced = std::ranges::any_of(requests, [&](const sched::Request& made) {
      return made.placement.ns == pool.ns && made.make_pool->name == pool.name;
    });
    if (replaced || !api::check_prompt(pool.tokens, services.model.n_ctx)) continue;
    if (auto added = add(std::make_shared<const Tokens>(pool.tokens), pool.ns, {.name = pool.name}); !added) {
      return added;
    }
  }
  std::make_shared<PoolChain>(services.engine, std::move(requests))->next();
  return {};
}

}  // namespace coppice::app
