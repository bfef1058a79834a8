// Recorded agent sessions (bench/traces/README.md): what is sent, when, and which prompts begin alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "result.h"
#include "stats/tokens.h"

namespace coppice::bench {

struct TraceRequest {
  std::vector<std::int64_t> blocks;  // equal ids at equal places: equal tokens
  int n_prompt = 0, n_answer = 1;
  double think_s = 0;  // between the last answer and this
};

struct TraceAgent;
using TraceStep = std::variant<TraceRequest, std::vector<TraceAgent>>;  // the agents of a step run side by side

struct TraceAgent {
  int n_tools = 0;  // tokens of the head that all sessions of this tool list share
  std::vector<TraceStep> steps;
};

struct Trace {
  std::string id;
  int block_size = 64;
  TraceAgent main;
};

Result<Trace> parse_trace(std::string_view json);
// A .json or .json.gz file.
Result<Trace> read_trace(const std::filesystem::path& file);
// The contents of a gzip file (RFC 1952, one member).
Result<std::string> gunzip(std::string_view bytes);

// How a trace becomes tokens on a small machine: each block and what is behind the last one shrink alike.
struct TraceScale {
  int tokens_per_block = 4;
  double think = 0.01;  // of the recorded seconds
  int answer_max = 32;
};

Tokens prompt_of(const Trace& trace, const TraceAgent& agent, const TraceRequest& request, const TraceScale& scale,
                 const Vocabulary& vocabulary, std::uint64_t seed);
int answer_of(const Trace& trace, const TraceRequest& request, const TraceScale& scale);

// The longest prompt, in tokens of the scale; the number of requests.
struct TraceSize {
  int prompt_max = 0, requests = 0;
};
TraceSize size_of(const Trace& trace, const TraceAgent& agent, const TraceScale& scale);

}  // namespace coppice::bench
