// Tokenizer on llama.h's vocabulary functions, which are const and safe from any thread.
#include <llama.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>

#include "base/json.h"
#include "base/json_text.h"
#include "engine/llama_runner.h"

namespace coppice::engine {
namespace {

// U+FFFD in place of every malformed sequence, which is what the JSON writer does.
std::string replace_invalid_utf8(std::string_view text) {
  return Json::parse(to_text(std::string(text))).get<std::string>();
}

class LlamaTokenizer final : public Tokenizer {
 public:
  explicit LlamaTokenizer(const llama_vocab* vocab) : vocab_(vocab) {
    for (Token token = 0; token < n_vocab(); ++token) {
      piece_bytes_max_ = std::max(piece_bytes_max_, piece(token, true).size());
    }
  }

  Tokens tokenize(std::string_view text, bool add_special, bool parse_special) const override {
    assert(text.size() < std::numeric_limits<std::int32_t>::max() / 2);
    if (auto tokens = try_tokenize(text, add_special, parse_special)) return *std::move(tokens);
    // Byte-pair vocabularies throw at bytes that encode no code point (F5 to F7, or beyond U+10FFFF); most other
    // malformed UTF-8 they read as U+FFFD themselves. Valid UTF-8 never throws.
    return try_tokenize(replace_invalid_utf8(text), add_special, parse_special).value_or(Tokens{});
  }

  std::string piece(Token token, bool special) const override {
    if (token < 0 || token >= n_vocab()) return {};
    // Nearly every token fits into the buffer; a negative result is the size that the others need.
    std::array<char, 64> buffer;
    const std::int32_t size = llama_token_to_piece(vocab_, token, buffer.data(), buffer.size(), 0, special);
    if (size >= 0) return {buffer.data(), static_cast<std::size_t>(size)};
    std::string text(static_cast<std::size_t>(-size), '\0');
    llama_token_to_piece(vocab_, token, text.data(), -size, 0, special);
    return text;
  }

  bool is_end_of_generation(Token token) const override {
    return token >= 0 && token < n_vocab() && llama_vocab_is_eog(vocab_, token);
  }

  std::int32_t n_vocab() const override { return llama_vocab_n_tokens(vocab_); }
  std::size_t piece_bytes_max() const override { return piece_bytes_max_; }

 private:
  std::optional<Tokens> try_tokenize(std::string_view text, bool add_special, bool parse_special) const try {
    const auto size = static_cast<std::int32_t>(text.size());
    // A token stands for at least one byte, except the few that the vocabulary puts around the text.
    Tokens tokens(text.size() + 4);
    std::int32_t n = llama_tokenize(vocab_, text.data(), size, tokens.data(), static_cast<std::int32_t>(tokens.size()),
                                    add_special, parse_special);
    if (n < 0) {  // minus the number of tokens: a normalizer made the text longer
      tokens.resize(static_cast<std::size_t>(-n));
      n = llama_tokenize(vocab_, text.data(), size, tokens.data(), -n, add_special, parse_special);
    }
    tokens.resize(static_cast<std::size_t>(n));
    tokens.shrink_to_fit();
    return tokens;
  } catch (const std::exception&) {
    return std::nullopt;
  }

  const llama_vocab* vocab_;
  std::size_t piece_bytes_max_ = 1;
};

}  // namespace

std::unique_ptr<Tokenizer> make_llama_tokenizer(const LlamaModel& model) {
  return std::make_unique<LlamaTokenizer>(model.vocab());
}

}  // namespace coppice::engine
