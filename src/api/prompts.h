// The prompt of a request, in every form that llama-server takes, as tokens.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/json_fwd.h"
#include "chat/chat.h"
#include "engine/tokenizer.h"

namespace coppice::api {

// One text or a list of texts and token ids. With `add_special`, special tokens go around the text, or around the first
// item if that is text: a list that starts with an id brings its own. Errors: invalid_request naming `field` for other
// types and for ids out of the vocabulary.
Result<Tokens> tokenize_mixed(const Json& value, const engine::Tokenizer& tokenizer, bool add_special,
                              bool parse_special, const char* field);

// The request's "prompt": "text", [ids], ["text", ids, ...], {"prompt_string": "text"}, or a list of several of these;
// a list of texts alone is several prompts. At least one prompt comes back; a prompt may be empty.
// Errors: invalid_request, also for more than `prompts_max`; context_overflow as check_text().
Result<std::vector<Tokens>> read_prompts(const Json& body, const engine::Tokenizer& tokenizer, std::size_t prompts_max,
                                         std::int32_t n_ctx);

// A rendered conversation. Errors: context_overflow as check_text().
Result<Tokens> tokenize_chat(const chat::Prompt& prompt, const engine::Tokenizer& tokenizer, std::int32_t n_ctx);

// context_overflow for text so long that it cannot fit however it is tokenized. Tokenizing takes seconds for megabytes,
// and a thread of the server with it.
Result<void> check_text(std::string_view text, const engine::Tokenizer& tokenizer, std::int32_t n_ctx);

// Errors: invalid_request for an empty prompt, context_overflow for one that leaves no room for an answer.
Result<void> check_prompt(const Tokens& prompt, std::int32_t n_ctx);

}  // namespace coppice::api
