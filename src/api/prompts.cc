#include "api/prompts.h"

#include <string>

#include "api/errors.h"
#include "api/fields.h"
#include "base/json.h"

namespace coppice::api {
namespace {

Result<Token> read_token(const Json& value, const engine::Tokenizer& tokenizer, const std::string& field) {
  const auto id = whole_number(value);
  if (!id || *id < 0 || *id >= tokenizer.n_vocab()) {
    return invalid("'" + field + "' has a token id that is not a whole number from 0 to " +
                       std::to_string(tokenizer.n_vocab() - 1),
                   field);
  }
  return static_cast<Token>(*id);
}

bool is_one_prompt(const Json& list) {
  bool any_number = false;
  for (const Json& item : list) {
    if (item.is_number()) {
      any_number = true;
    } else if (!item.is_string()) {
      return false;
    }
  }
  return any_number;
}

// check_text() of every text in one prompt, whatever its form.
Result<void> check_texts(const Json& value, const engine::Tokenizer& tokenizer, std::int32_t n_ctx) {
  if (value.is_string()) return check_text(value.get_ref<const std::string&>(), tokenizer, n_ctx);
  if (!value.is_array() && !value.is_object()) return {};
  for (const Json& item : value) {
    if (!item.is_string()) continue;
    if (auto fits = check_text(item.get_ref<const std::string&>(), tokenizer, n_ctx); !fits) return fits;
  }
  return {};
}

Result<Tokens> read_one(const Json& value, const engine::Tokenizer& tokenizer) {
  if (!value.is_object()) return tokenize_mixed(value, tokenizer, true, true, "prompt");
  if (auto media = value.find("multimodal_data"); media != value.end() && !media->empty()) {
    return invalid("'prompt' has 'multimodal_data', but this server takes text only", "prompt");
  }
  auto text = value.find("prompt_string");
  if (text == value.end() || !text->is_string()) return invalid("'prompt' objects need a 'prompt_string'", "prompt");
  return tokenize_mixed(*text, tokenizer, true, true, "prompt");
}

}  // namespace

Result<Tokens> tokenize_mixed(const Json& value, const engine::Tokenizer& tokenizer, bool add_special,
                              bool parse_special, const char* field) {
  if (value.is_string()) {
    return tokenizer.tokenize(value.get_ref<const std::string&>(), add_special, parse_special);
  }
  const std::string name = field;
  if (!value.is_array()) return invalid("'" + name + "' must be text or a list of texts and token ids", name);
  const auto& items = value.get_ref<const Json::array_t&>();
  const auto n_vocab = static_cast<std::uint64_t>(tokenizer.n_vocab());
  Tokens out;
  out.reserve(items.size());
  for (const Json& item : items) {
    // Nearly all of the items of a long list; the others may take their time.
    if (const auto* id = item.get_ptr<const Json::number_unsigned_t*>(); id != nullptr && *id < n_vocab) {
      out.push_back(static_cast<Token>(*id));
    } else if (item.is_string()) {
      const bool first = &item == items.data();
      const Tokens piece = tokenizer.tokenize(item.get_ref<const std::string&>(), add_special && first, parse_special);
      out.insert(out.end(), piece.begin(), piece.end());
    } else if (item.is_number()) {
      auto token = read_token(item, tokenizer, name);
      if (!token) return std::unexpected(token.error());
      out.push_back(*token);
    } else {
      return invalid("'" + name + "' may hold texts and token ids only", name);
    }
  }
  return out;
}

Result<Tokens> tokenize_chat(const chat::Prompt& prompt, const engine::Tokenizer& tokenizer, std::int32_t n_ctx) {
  if (auto fits = check_text(prompt.text, tokenizer, n_ctx); !fits) return std::unexpected(fits.error());
  return tokenizer.tokenize(prompt.text, true, true);
}

Result<void> check_text(std::string_view text, const engine::Tokenizer& tokenizer, std::int32_t n_ctx) {
  const std::size_t n_tokens_min = text.size() / tokenizer.piece_bytes_max();
  if (n_tokens_min <= static_cast<std::size_t>(n_ctx)) return {};
  return std::unexpected(context_overflow(n_tokens_min, n_ctx));
}

Result<std::vector<Tokens>> read_prompts(const Json& body, const engine::Tokenizer& tokenizer, std::size_t prompts_max,
                                         std::int32_t n_ctx) {
  auto found = body.find("prompt");
  if (found == body.end() || found->is_null()) return invalid("'prompt' is missing", "prompt");
  const Json& prompt = *found;
  std::vector<Tokens> out;
  const auto add = [&](const Json& value) -> Result<void> {
    if (auto fits = check_texts(value, tokenizer, n_ctx); !fits) return fits;
    auto tokens = read_one(value, tokenizer);
    if (!tokens) return std::unexpected(tokens.error());
    out.push_back(*std::move(tokens));
    return {};
  };
  if (!prompt.is_array() || prompt.empty() || is_one_prompt(prompt)) {
    if (auto added = add(prompt); !added) return std::unexpected(added.error());
    return out;
  }
  if (prompt.size() > prompts_max) {
    return invalid("'prompt' is a list of " + std::to_string(prompt.size()) + " prompts; one request may have " +
                       std::to_string(prompts_max),
                   "prompt");
  }
  for (const Json& item : prompt) {
    if (auto added = add(item); !added) return std::unexpected(added.error());
  }
  return out;
}

Result<void> check_prompt(const Tokens& prompt, std::int32_t n_ctx) {
  if (prompt.empty()) return invalid("the prompt is empty", "prompt");
  if (std::cmp_greater_equal(prompt.size(), n_ctx)) return std::unexpected(context_overflow(prompt.size(), n_ctx));
  return {};
}

}  // namespace coppice::api
