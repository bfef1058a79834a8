#include "app/warm_sessions.h"

#include "api/background_request.h"
#include "obs/log.h"

namespace coppice::app {
namespace {

constexpr std::size_t kSessionsMax = 16;

}  // namespace

void start_warm_sessions(const api::Context& context) {
  sched::Engine& engine = context.services.engine;
  const TokenPos tokens_max = context.services.model.n_ctx / 2;
  engine.inspect([&engine, tokens_max](sched::Inspector& inspector) {
    const auto recent = inspector.recent_prompts(kSessionsMax, tokens_max);
    // The latest comes first: its client is the likeliest to come next.
    for (const sched::RecentPrompt& it : recent) {
      const auto submitted = engine.submit(api::background_request(engine, it.session.ns, it.session.name, it.prompt));
      if (!submitted) return;  // it is stopping
    }
    if (!recent.empty()) obs::log_info("recent sessions are made ready", "sessions={}", recent.size());
  });
}

}  // namespace coppice::app
