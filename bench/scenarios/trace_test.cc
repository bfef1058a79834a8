#include "scenarios/trace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace coppice::bench {
namespace {

constexpr Vocabulary kVocabulary{100, 5000, 7};
constexpr TraceScale kScale{.tokens_per_block = 4, .think = 1, .answer_max = 32};

constexpr std::string_view kSession = R"({"id": "x", "block_size": 64, "tool_tokens": 130, "requests": [
  {"type": "n", "in": 200, "out": 640, "hash_ids": [1, 2, 3], "think_time": 0},
  {"type": "subagent", "duration_ms": 2000, "tool_tokens": 64, "requests": [
    {"type": "n", "in": 70, "out": 1, "hash_ids": [9]}]},
  {"type": "subagent", "duration_ms": 5000, "requests": [{"type": "n", "in": 64, "out": 1, "hash_ids": [8]}]},
  {"type": "s", "in": 256, "out": 64, "hash_ids": [1, 2, 3, 4], "think_time": 7.5}]})";

const TraceRequest& request(const Trace& trace, std::size_t step) {
  return std::get<TraceRequest>(trace.main.steps[step]);
}

Tokens prompt(const Trace& trace, std::size_t step) {
  return prompt_of(trace, trace.main, request(trace, step), kScale, kVocabulary, 1);
}

std::size_t common(const Tokens& a, const Tokens& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

TEST(Trace, NeighbouringSubAgentsRunTogetherAndTheParentsWaitIsTakenOff) {
  const auto trace = parse_trace(kSession);
  ASSERT_TRUE(trace) << trace.error();
  ASSERT_EQ(trace->main.steps.size(), 3U);
  EXPECT_EQ(std::get<std::vector<TraceAgent>>(trace->main.steps[1]).size(), 2U);
  EXPECT_EQ(request(*trace, 2).think_s, 2.5);
}

TEST(Trace, EqualBlocksGiveEqualPrefixes) {
  const auto trace = parse_trace(kSession);
  ASSERT_TRUE(trace);
  const Tokens first = prompt(*trace, 0), last = prompt(*trace, 2);
  EXPECT_EQ(first.size(), 3U * 4) << "8 tokens behind the last block shrink to nothing";
  EXPECT_EQ(last.size(), 4U * 4);
  EXPECT_EQ(common(first, last), 12U);
  EXPECT_EQ(answer_of(*trace, request(*trace, 0), kScale), 32);
  EXPECT_EQ(answer_of(*trace, request(*trace, 2), kScale), 4);
  EXPECT_EQ(size_of(*trace, trace->main, kScale).requests, 4);
}

TEST(Trace, SessionsOfOneToolListShareItsHeadAndNothingElse) {
  const auto a = parse_trace(kSession);
  std::string other(kSession);
  other.replace(other.find("\"x\""), 3, "\"y\"");
  const auto b = parse_trace(other);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(common(prompt(*a, 0), prompt(*b, 0)), 2U * 4);
  EXPECT_EQ(common(prompt(*a, 0), prompt_of(*a, a->main, request(*a, 0), kScale, kVocabulary, 2)), 0U)
      << "another seed";
}

TEST(Trace, WhatIsNoTraceIsAnError) {
  for (const char* bad : {"", "{}", "[1]", R"({"id": 1})", R"({"id": "x", "block_size": 0, "requests": []})"}) {
    EXPECT_FALSE(parse_trace(bad)) << bad;
  }
  EXPECT_FALSE(read_trace("/no/such/file.json"));
}

TEST(Trace, ReadsCompressedFiles) {
  // printf '%s' '{}' | gzip -n
  const unsigned char bytes[] = {0x1f, 0x8b, 8, 0,    0,    0,    0,    0, 0, 3, 0xab,
                                 0xae, 5,    0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0};
  const std::string file(reinterpret_cast<const char*>(bytes), sizeof bytes);
  const auto text = gunzip(file);
  ASSERT_TRUE(text) << text.error();
  EXPECT_EQ(*text, "{}");
  EXPECT_FALSE(gunzip("nonsense"));
  EXPECT_FALSE(gunzip(file.substr(0, 19)));
  EXPECT_FALSE(gunzip(file.substr(0, 12) + std::string(12, '\xff')));
}

TEST(Trace, TheRecordedOnesAreRead) {
  for (const auto& [name, requests] : {std::pair("0129", 24), {"0277", 53}, {"0358", 15}}) {
    const auto trace = read_trace(COPPICE_BENCH_TRACES "/trace_" + std::string(name) + ".json.gz");
    ASSERT_TRUE(trace) << trace.error();
    EXPECT_EQ(size_of(*trace, trace->main, kScale).requests, requests);
  }
}

}  // namespace
}  // namespace coppice::bench
