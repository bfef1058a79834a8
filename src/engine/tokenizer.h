// Text <-> tokens. Implementations are immutable after construction and safe to use from any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"

namespace coppice::engine {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // add_special: put the model's BOS (and whatever else its vocabulary wants) around the text.
  // parse_special: read "<|im_start|>" and its like as one token instead of as text.
  virtual Tokens tokenize(std::string_view text, bool add_special, bool parse_special) const = 0;

  // The bytes of one token; may be part of a UTF-8 character. `special`: render control tokens as text, else as "".
  virtual std::string piece(Token token, bool special) const = 0;

  virtual bool is_end_of_generation(Token token) const = 0;  // EOS, EOT, ... : generation stops here
  virtual std::int32_t n_vocab() const = 0;                  // valid tokens are 0 .. n_vocab - 1

  // The most bytes of text that one token stands for: text of n bytes has at least n / piece_bytes_max() tokens. Known
  // before tokenizing, which takes seconds for megabytes.
  virtual std::size_t piece_bytes_max() const = 0;

  std::string text(const Tokens& tokens, bool special) const {
    std::string out;
    for (Token t : tokens) out += piece(t, special);
    return out;
  }
};

}  // namespace coppice::engine
