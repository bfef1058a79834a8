// Prompts as token ids: runs that are the same on every machine, and unlike one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace coppice::bench {

using Tokens = std::vector<std::int32_t>;

// Ids that a model takes as ordinary text, [low, high), and one of them that every answer is made of: it is given so
// much weight that no model chooses another. So the next turn's prompt is known before the answer, and equal for all.
struct Vocabulary {
  std::int32_t low = 0, high = 0;
  std::int32_t answer = 0;
};

// Appends `n` tokens drawn from `seed`. Two seeds give runs without a common beginning, but by accident.
void append_run(Tokens& tokens, const Vocabulary& vocabulary, std::uint64_t seed, std::size_t n);
Tokens run_of(const Vocabulary& vocabulary, std::uint64_t seed, std::size_t n);

// One seed out of several numbers.
std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0);

}  // namespace coppice::bench
