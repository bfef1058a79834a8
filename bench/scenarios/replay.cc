// replay: recorded agent sessions, several at once, each at its own pace, with their sub-agents beside them.
#include <fmt/format.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "scenarios/makers.h"
#include "scenarios/tally.h"
#include "scenarios/trace.h"
#include "stats/summary.h"

namespace coppice::bench {
namespace {

struct Replay {
  std::vector<Trace> traces;
  TraceScale scale;
  int requests_max = 0;  // of each session's main agent
};

// One episode: all sessions against one server.
class ReplayRun {
 public:
  ReplayRun(const Replay& replay, Peer& peer, std::uint64_t seed) : replay_(replay), peer_(peer), seed_(seed) {}

  Result<Episode> run() {
    const auto start = std::chrono::steady_clock::now();
    {
      std::vector<std::jthread> threads;
      for (const Trace& trace : replay_.traces) {
        threads.emplace_back([this, &trace] { run_agent(trace, trace.main, trace.id, replay_.requests_max); });
      }
    }
    const std::chrono::duration<double, std::milli> makespan = std::chrono::steady_clock::now() - start;
    if (!error_.empty()) return std::unexpected(error_);
    Episode episode = tally_.measures();
    episode.push_back({"first_ms_p95", Unit::ms, percentile(tally_.first_ms(), 0.95)});
    episode.push_back({"makespan_ms", Unit::ms, makespan.count()});
    return episode;
  }

 private:
  void run_agent(const Trace& trace, const TraceAgent& agent, const std::string& name, int requests_max) {
    int n = 0;
    for (const TraceStep& step : agent.steps) {
      if (n++ == requests_max || failed()) return;
      if (const auto* request = std::get_if<TraceRequest>(&step)) {
        std::this_thread::sleep_for(std::chrono::duration<double>(request->think_s * replay_.scale.think));
        run_request(trace, agent, *request, name);
        continue;
      }
      std::vector<std::jthread> children;
      int child = 0;
      for (const TraceAgent& a : std::get<std::vector<TraceAgent>>(step)) {
        children.emplace_back(
            [&, id = fmt::format("{}-{}-{}", name, n, child++)] { run_agent(trace, a, id, requests_max); });
      }
    }
  }

  void run_request(const Trace& trace, const TraceAgent& agent, const TraceRequest& request, const std::string& name) {
    CompletionRequest r{.prompt = prompt_of(trace, agent, request, replay_.scale, peer_.vocabulary(), seed_),
                        .n_answer = answer_of(trace, request, replay_.scale),
                        .session = fmt::format("{}-{}", name, seed_),
                        .messages = nullptr};
    const Result<Completion> answer = peer_.complete(r);
    const std::lock_guard lock(mutex_);
    if (answer) {
      tally_.add(r, *answer, peer_.vocabulary());
    } else {
      error_ = answer.error();
    }
  }

  bool failed() {
    const std::lock_guard lock(mutex_);
    return !error_.empty();
  }

  const Replay& replay_;
  Peer& peer_;
  const std::uint64_t seed_;
  std::mutex mutex_;  // guards tally_ and error_
  Tally tally_;
  std::string error_;
};

}  // namespace

Result<Scenario> make_replay(const ScenarioOptions& options) {
  Scenario scenario{
      "replay", "How much of recorded agents' work is computed again, with cells for a part of it?", "KV cells", {}};
  Replay p;
  p.scale.tokens_per_block = by_scale(options.scale, 1, 2, 1);
  p.scale.think = by_scale(options.scale, 0.0005, 0.005, 0.0005);
  p.scale.answer_max = by_scale(options.scale, 4, 16, 4);
  p.requests_max = by_scale(options.scale, 8, 24, 5);
  auto names =
      by_scale<std::vector<std::string>>(options.scale, {"0129", "0358"}, {"0030", "0129", "0277", "0358"}, {"0358"});
  int prompts_max = 0, prompt_max = 0;
  for (const std::string& name : names) {
    Result<Trace> trace = read_trace(options.traces + "/trace_" + name + ".json.gz");
    if (!trace) return std::unexpected(trace.error());
    const TraceSize size = size_of(*trace, trace->main, p.scale);
    prompts_max += size.prompt_max;
    prompt_max = std::max(prompt_max, size.prompt_max);
    p.traces.push_back(std::move(*trace));
  }
  const auto shared = std::make_shared<const Replay>(std::move(p));
  // Cells for everything, and for the longest session and little else.
  for (const int cells : {prompts_max * 2, prompt_max + prompt_max / 4}) {
    Variant v;
    v.needs = {.cells = (cells + 255) / 256 * 256, .slots = 4};
    v.label = fmt::format("{} sessions, {} cells", shared->traces.size(), v.needs.cells);
    v.x = v.needs.cells;
    v.run = [shared](Peer& peer, std::uint64_t seed) { return ReplayRun(*shared, peer, seed).run(); };
    scenario.variants.push_back(std::move(v));
  }
  return scenario;
}

}  // namespace coppice::bench
