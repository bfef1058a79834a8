#include "scenarios/trace.h"

#include <algorithm>
#include <boost/beast/zlib/inflate_stream.hpp>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

namespace coppice::bench {
namespace {

using Json = nlohmann::json;

TraceRequest parse_request(const Json& json) {
  TraceRequest request;
  request.blocks = json.at("hash_ids").get<std::vector<std::int64_t>>();
  request.n_prompt = json.at("in");
  request.n_answer = std::max(json.at("out").get<int>(), 1);
  request.think_s = std::max(json.value("think_time", 0.0), 0.0);
  return request;
}

// Sub-agents that follow one another in the list were started together; the parent's wait for them is part of its next
// think time, and is taken off it, as a replay waits for the real ones.
TraceAgent parse_agent(const Json& json) {
  TraceAgent agent;
  agent.n_tools = json.value("tool_tokens", 0);
  double waited_s = 0;
  for (const Json& r : json.at("requests")) {
    if (r.at("type") == "subagent") {
      if (agent.steps.empty() || !std::holds_alternative<std::vector<TraceAgent>>(agent.steps.back())) {
        agent.steps.emplace_back(std::vector<TraceAgent>{});
      }
      std::get<std::vector<TraceAgent>>(agent.steps.back()).push_back(parse_agent(r));
      waited_s = std::max(waited_s, r.value("duration_ms", 0.0) / 1000);
    } else {
      TraceRequest request = parse_request(r);
      request.think_s = std::max(request.think_s - std::exchange(waited_s, 0), 0.0);
      agent.steps.emplace_back(std::move(request));
    }
  }
  return agent;
}

std::uint64_t digest(std::string_view text) {
  std::uint64_t d = 0;
  for (const unsigned char c : text) d = mix(d, c);
  return d;
}

// Bytes of a gzip member's header; 0 if it is none.
std::size_t gzip_header(std::string_view bytes) {
  constexpr unsigned char extra = 4, name = 8, comment = 16, check = 2;
  const auto at = [&](std::size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U; };
  if (bytes.size() < 18 || at(0) != 0x1f || at(1) != 0x8b || at(2) != 8) return 0;
  const unsigned flags = at(3);
  std::size_t end = 10;
  if ((flags & extra) != 0) end += 2 + at(end) + 256 * at(end + 1);
  for (const unsigned char field : {name, comment}) {
    if ((flags & field) == 0) continue;
    const std::size_t zero = bytes.find('\0', end);
    if (zero == std::string_view::npos) return 0;
    end = zero + 1;
  }
  if ((flags & check) != 0) end += 2;
  return end < bytes.size() ? end : 0;
}

}  // namespace

Result<std::string> gunzip(std::string_view bytes) {
  const std::size_t header = gzip_header(bytes);
  if (header == 0) return std::unexpected("not a gzip file");
  namespace zlib = boost::beast::zlib;
  zlib::inflate_stream inflate;
  zlib::z_params p;
  p.next_in = bytes.data() + header;
  p.avail_in = bytes.size() - header - 8;  // a checksum and the size follow
  std::string out;
  boost::system::error_code ec;
  while (!ec) {
    std::string piece(256 << 10, '\0');
    p.next_out = piece.data();
    p.avail_out = piece.size();
    inflate.write(p, zlib::Flush::sync, ec);
    out.append(piece, 0, piece.size() - p.avail_out);
    if (!ec && p.avail_out == piece.size()) break;  // nothing more comes of what there is
  }
  if (ec != zlib::error::end_of_stream) return std::unexpected("a damaged gzip file");
  return out;
}

Result<Trace> parse_trace(std::string_view text) try {
  const Json json = Json::parse(text);
  Trace trace;
  trace.id = json.at("id");
  trace.block_size = json.at("block_size");
  if (trace.block_size < 1) return std::unexpected("a trace with an impossible block size");
  trace.main = parse_agent(json);
  return trace;
} catch (const std::exception& e) {
  return std::unexpected(std::string("not a trace: ") + e.what());
}

Result<Trace> read_trace(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  if (bytes.empty()) return std::unexpected("cannot read " + file.string());
  if (file.extension() == ".gz") {
    Result<std::string> text = gunzip(bytes);
    if (!text) return std::unexpected(file.string() + ": " + text.error());
    bytes = std::move(*text);
  }
  Result<Trace> trace = parse_trace(bytes);
  if (!trace) return std::unexpected(file.string() + ": " + trace.error());
  return trace;
}

Tokens prompt_of(const Trace& trace, const TraceAgent& agent, const TraceRequest& request, const TraceScale& scale,
                 const Vocabulary& vocabulary, std::uint64_t seed) {
  const auto n_blocks = static_cast<int>(request.blocks.size());
  const int shared = agent.n_tools / trace.block_size, behind = request.n_prompt - n_blocks * trace.block_size;
  const std::uint64_t own = mix(seed, digest(trace.id));
  Tokens tokens;
  for (int i = 0; i < n_blocks; ++i) {
    // The head of a tool list is the same in every session that has it; ids tell so within one file only.
    const std::uint64_t block =
        i < shared ? mix(seed, static_cast<std::uint64_t>(agent.n_tools), static_cast<std::uint64_t>(i))
                   : mix(own, static_cast<std::uint64_t>(request.blocks[static_cast<std::size_t>(i)]));
    append_run(tokens, vocabulary, block, static_cast<std::size_t>(scale.tokens_per_block));
  }
  const int tail = std::max(behind * scale.tokens_per_block / trace.block_size, tokens.empty() ? 1 : 0);
  append_run(tokens, vocabulary, mix(own, digest("tail"), static_cast<std::uint64_t>(request.n_prompt)),
             static_cast<std::size_t>(std::max(tail, 0)));
  return tokens;
}

int answer_of(const Trace& trace, const TraceRequest& request, const TraceScale& scale) {
  return std::clamp(request.n_answer * scale.tokens_per_block / trace.block_size, 1, scale.answer_max);
}

TraceSize size_of(const Trace& trace, const TraceAgent& agent, const TraceScale& scale) {
  TraceSize size;
  for (const TraceStep& step : agent.steps) {
    if (const auto* request = std::get_if<TraceRequest>(&step)) {
      const int prompt = (request->n_prompt / trace.block_size + 1) * scale.tokens_per_block;
      size.prompt_max = std::max(size.prompt_max, prompt + answer_of(trace, *request, scale));
      ++size.requests;
      continue;
    }
    for (const TraceAgent& child : std::get<std::vector<TraceAgent>>(step)) {
      const TraceSize inner = size_of(trace, child, scale);
      size.prompt_max = std::max(size.prompt_max, inner.prompt_max);
      size.requests += inner.requests;
    }
  }
  return size;
}

}  // namespace coppice::bench
