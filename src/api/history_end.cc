#include "api/history_end.h"

namespace coppice::api {

TokenPos history_tokens(const Tokens& prompt, std::string_view generation_prompt, const engine::Tokenizer& tokenizer) {
  std::size_t at = prompt.size();
  while (at > 0 && !generation_prompt.empty()) {
    const std::string piece = tokenizer.piece(prompt[--at], true);
    if (piece.empty() || !generation_prompt.ends_with(piece)) return 0;  // or a token reaches into the history
    generation_prompt.remove_suffix(piece.size());
  }
  return generation_prompt.empty() && at < prompt.size() ? static_cast<TokenPos>(at) : 0;
}

}  // namespace coppice::api
