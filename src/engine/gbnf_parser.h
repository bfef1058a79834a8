// GBNF text as rules, for gbnf_check. Accepts what llama.cpp v0.4.0's grammar parser accepts; characters are not kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace coppice::engine::gbnf {

struct Element {
  static constexpr int kTerminal = -1;
  int rule = kTerminal;     // index into Grammar::rules, or a terminal
  std::int64_t repeat = 1;  // how often it stands here in a row
};

using Alternate = std::vector<Element>;

struct Rule {
  std::string name;  // a rule made for a group or a repetition has the name of the rule around it
  bool defined = false;
  // Stands for this many rules of llama.cpp's, x{m,n} making n - m of them, each referring to the next.
  std::int64_t chain = 1;
  std::vector<Alternate> alternates;
};

struct Grammar {
  std::vector<Rule> rules;
  int root = -1;
};

// Errors: invalid_request with the line; also for a grammar over the limits on size, nesting and repetition.
Result<Grammar> parse(std::string_view text);

}  // namespace coppice::engine::gbnf
