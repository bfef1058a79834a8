#include "stats/tokens.h"

namespace coppice::bench {
namespace {

// SplitMix64 (Steele, Lea and Flood 2014).
std::uint64_t scramble(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return scramble(scramble(scramble(a + kStep) + b + kStep) + c + kStep);
}

void append_run(Tokens& tokens, const Vocabulary& vocabulary, std::uint64_t seed, std::size_t n) {
  const auto width = static_cast<std::uint64_t>(vocabulary.high - vocabulary.low);
  std::uint64_t state = scramble(seed + kStep);
  tokens.reserve(tokens.size() + n);
  for (std::size_t i = 0; i < n; ++i) {
    state += kStep;
    tokens.push_back(vocabulary.low + static_cast<std::int32_t>(scramble(state) % width));
  }
}

Tokens run_of(const Vocabulary& vocabulary, std::uint64_t seed, std::size_t n) {
  Tokens tokens;
  append_run(tokens, vocabulary, seed, n);
  return tokens;
}

}  // namespace coppice::bench
