// Refuses GBNF grammars that would hang, exhaust or abort the process inside llama.cpp v0.4.0's grammar code, and says
// what is wrong with most others that do not compile (llama.cpp itself only prints that to stderr).
//
// What llama.cpp does not survive, and what is checked instead:
//   x{3,1}                        counts down from 2^64              -> the bounds of a repetition are compared
//   ((((((...                     recursion without a limit          -> nesting is limited
//   a ::= b | b; b ::= c | c ...  looks for left recursion along     -> paths between rules are counted first
//                                 every path, 2^n of them
//   x ::= y x "a"; y ::= z; z ::= ""   left recursion hidden behind  -> emptiness is computed to a fixed point
//                                 an empty rule is not found; the stack then grows without end
//   x ::= y x; y ::= z; z ::= ""  nothing can be matched: GGML_ASSERT -> every rule must reach a character or its end
//   %llguidance ...               another engine, not built in: GGML_ABORT
//
// NOTE: not covered is a grammar that is ambiguous after reading input, such as x ::= "a" x "b" | "a" x "c": llama.cpp
// keeps every possible parse, so their number can double with each character.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace coppice::engine {

// `param` names the request field at fault. Thread-safe. Time is linear in the grammar's size.
Result<void> check_gbnf(std::string_view grammar, const std::string& param);

}  // namespace coppice::engine
