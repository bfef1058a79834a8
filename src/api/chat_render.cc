#include "api/chat_render.h"

#include <utility>

#include "api/conversation.h"
#include "api/prompts.h"

namespace coppice::api {

Result<RenderedChat> render_chat(const Services& services, const Continuation& continuation, const Json& body) {
  auto prompt = services.templates.render(body);
  if (!prompt) return std::unexpected(prompt.error());
  RenderedChat out;
  if (auto tokens = continuation.tokens(prompt->text, services.tokenizer)) {
    out.continued = true;
    out.tokens = *std::move(tokens);
  } else {
    auto all = tokenize_chat(*prompt, services.tokenizer, services.model.n_ctx);
    if (!all) return std::unexpected(all.error());
    out.tokens = *std::move(all);
  }
  if (services.turns != nullptr && continuation.conversation()) {
    out.turn = TurnSeed{.conversation = *continuation.conversation(),
                        .prompt_bytes = prompt->text.size(),
                        .prompt_digest = digest_of(prompt->text)};
  }
  out.prompt = *std::move(prompt);
  return out;
}

}  // namespace coppice::api
