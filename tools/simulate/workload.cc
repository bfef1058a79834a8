#include "simulate/workload.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace coppice::simulate {
namespace {

using bench::TraceAgent;
using bench::TraceRequest;

// What the fake model knows; 0 ends an answer.
constexpr bench::Vocabulary kVocabulary{.low = 1, .high = 1 << 20, .answer = 1};
constexpr std::uint64_t kStart = 1, kTail = 2, kHead = 3, kSession = 4;

const TraceRequest* request_at(const TraceAgent& agent, std::size_t step) {
  return step < agent.steps.size() ? std::get_if<TraceRequest>(&agent.steps[step]) : nullptr;
}

const TraceRequest* next_request(const TraceAgent& agent, std::size_t step, std::size_t end) {
  for (++step; step < end; ++step) {
    if (const TraceRequest* r = request_at(agent, step)) return r;
  }
  return nullptr;
}

bool goes_on_from(const TraceRequest& next, const TraceRequest& r) {
  return next.blocks.size() >= r.blocks.size() && std::equal(r.blocks.begin(), r.blocks.end(), next.blocks.begin());
}

// Every prefix that was seen, as a digest.
class Seen {
 public:
  // How many of the prompt's tokens are behind all that was seen, and all of it is seen from now on.
  std::int64_t add(const Tokens& prompt, const Tokens& answer) {
    std::int64_t known = 0;
    std::uint64_t digest = 0;
    bool all_known = true;
    const auto see = [&](Token token) {
      digest = bench::mix(digest, static_cast<std::uint64_t>(token));
      return !seen_.insert(digest).second;
    };
    for (const Token token : prompt) {
      all_known &= see(token);
      known += all_known ? 1 : 0;
    }
    for (std::size_t i = 0; i + 1 < answer.size(); ++i) see(answer[i]);  // the last one is never evaluated
    const auto n = static_cast<std::int64_t>(prompt.size());
    return std::max<std::int64_t>(n - known, 1);  // the last token's logits are needed
  }
  std::int64_t size() const { return static_cast<std::int64_t>(seen_.size()); }

 private:
  std::unordered_set<std::uint64_t> seen_;
};

Duration seconds(double s) { return Duration(static_cast<std::int64_t>(s * 1e6)); }

}  // namespace

Workload::Workload(std::vector<bench::Trace> traces, const WorkloadOptions& options)
    : traces_(std::move(traces)), options_(options) {}

std::size_t Workload::steps(const TraceAgent& agent) const {
  return std::min(agent.steps.size(), static_cast<std::size_t>(options_.requests_max));
}

Duration Workload::start(int session) const {
  const std::uint64_t drawn = bench::mix(options_.seed, kStart, static_cast<std::uint64_t>(session));
  return seconds(options_.start_window_s * static_cast<double>(drawn >> 11U) * 0x1p-53);
}

Duration Workload::think(const TraceRequest& request) const {
  return seconds(std::min(request.think_s, options_.think_s_max));
}

void Workload::append_blocks(Tokens& tokens, int session, const TraceAgent& agent, const TraceRequest& request,
                             std::size_t first, std::size_t end) const {
  const auto shared = static_cast<std::size_t>(agent.n_tools / trace(session).block_size);
  const std::uint64_t own = bench::mix(options_.seed, kSession, static_cast<std::uint64_t>(session));
  const std::uint64_t head = bench::mix(options_.seed, kHead, static_cast<std::uint64_t>(agent.n_tools));
  for (std::size_t i = first; i < std::min(end, request.blocks.size()); ++i) {
    const std::uint64_t seed =
        i < shared ? bench::mix(head, i) : bench::mix(own, static_cast<std::uint64_t>(request.blocks[i]));
    bench::append_run(tokens, kVocabulary, seed, static_cast<std::size_t>(options_.tokens_per_block));
  }
}

Turn Workload::turn(int session, const TraceAgent& agent, std::size_t step) const {
  const TraceRequest& r = *request_at(agent, step);
  const int block_size = trace(session).block_size;
  const auto n_blocks = r.blocks.size();
  const int behind = std::max(0, r.n_prompt - static_cast<int>(n_blocks) * block_size);
  const auto scaled = [&](int n) { return static_cast<std::size_t>(n * options_.tokens_per_block / block_size); };
  const std::size_t tail = std::max<std::size_t>(scaled(behind), n_blocks == 0 ? 1 : 0);
  const std::size_t n_answer = std::max<std::size_t>(scaled(r.n_answer), 1);

  Turn turn;
  append_blocks(turn.prompt, session, agent, r, 0, n_blocks);
  Tokens more;  // behind the whole blocks: the rest of the prompt, and the answer
  const TraceRequest* next = next_request(agent, step, steps(agent));
  if (next != nullptr && goes_on_from(*next, r)) {
    append_blocks(more, session, agent, *next, n_blocks,
                  n_blocks + (tail + n_answer) / static_cast<std::size_t>(options_.tokens_per_block) + 1);
  }
  const std::uint64_t own = bench::mix(options_.seed, kSession, static_cast<std::uint64_t>(session));
  const std::uint64_t rest = bench::mix(own, kTail, bench::mix(static_cast<std::uint64_t>(r.n_prompt), step));
  bench::append_run(more, kVocabulary, rest, tail + n_answer);
  const auto at = more.begin() + static_cast<std::ptrdiff_t>(tail);
  turn.prompt.insert(turn.prompt.end(), more.begin(), at);
  turn.answer.assign(at, at + static_cast<std::ptrdiff_t>(n_answer));
  return turn;
}

Workload::Best Workload::best() const {
  Best best;
  Seen seen;
  const std::function<void(int, const TraceAgent&)> add = [&](int session, const TraceAgent& agent) {
    for (std::size_t step = 0; step < steps(agent); ++step) {
      if (request_at(agent, step) == nullptr) {
        for (const TraceAgent& child : std::get<std::vector<TraceAgent>>(agent.steps[step])) add(session, child);
        continue;
      }
      const Turn t = turn(session, agent, step);
      ++best.requests;
      best.prompt_tokens += static_cast<std::int64_t>(t.prompt.size());
      best.computed += seen.add(t.prompt, t.answer);
      best.longest = std::max(best.longest, static_cast<int>(t.prompt.size() + t.answer.size()));
    }
  };
  for (int session = 0; session < options_.sessions; ++session) add(session, agent(session));
  best.held = seen.size();
  return best;
}

bench::Result<std::vector<bench::Trace>> read_traces(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".gz") files.push_back(entry.path());
  }
  if (files.empty()) return std::unexpected("no traces in " + folder.string());
  std::ranges::sort(files);
  std::vector<bench::Trace> traces;
  for (const auto& file : files) {
    bench::Result<bench::Trace> trace = bench::read_trace(file);
    if (!trace) return std::unexpected(trace.error());
    traces.push_back(std::move(*trace));
  }
  return traces;
}

bench::Trace rotation_trace(int turns, int blocks_first) {
  constexpr int kGrowth = 2;  // blocks a turn
  bench::Trace trace{.id = "rotation", .block_size = 64, .main = {}};
  TraceRequest request{.blocks = {}, .n_prompt = 0, .n_answer = 64, .think_s = 60};
  std::int64_t id = 0;
  for (int turn = 0; turn < turns; ++turn) {
    const int grown = turn == 0 ? blocks_first : kGrowth;
    for (int i = 0; i < grown; ++i) request.blocks.push_back(++id);
    request.n_prompt = static_cast<int>(request.blocks.size()) * trace.block_size;
    trace.main.steps.emplace_back(request);
  }
  return trace;
}

}  // namespace coppice::simulate
