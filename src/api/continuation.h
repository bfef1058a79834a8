// Exact continuation (spec B23): when a conversation holds answers that this server generated, its prompt is built from
// the very tokens that were sampled, whatever a client's JSON library made of them on the way.
//
//   body --find turns--> restored body --template--> text
//                                                     |  [text of the turn's prompt][the turn, as rendered][the rest]
//                                                     v                              |
//                                          the turn's prompt tokens + its own tokens + tokenized rest
//
// Nothing is taken on trust: a turn counts only if the conversation up to it means the same (its digest), if the
// rendered text begins with the text of the turn's prompt, and if the template still shows what the turn said, its
// reasoning included. What a template drops stays dropped. It also saves tokenizing everything up to the turn.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/conversation.h"
#include "base/json_fwd.h"
#include "engine/tokenizer.h"
#include "session/turn_memory.h"

namespace coppice::api {

// The turn's own tokens and then `rest`: text from the turn's end token on. Nothing if it does not begin with that.
std::optional<Tokens> tokens_from(const session::Turn& turn, std::string_view rest, const engine::Tokenizer& tokenizer);

// Whether this rendering of the turn shows everything that the turn said.
bool shows(std::string_view rendered, const session::Turn& turn);

class Continuation {
 public:
  // Finds the turns of `body`, and gives them back in it what clients lose: reasoning, and tool-call arguments as they
  // were written. `memory` null: nothing is ever found.
  Continuation(session::TurnMemory* memory, NamespaceId ns, Json& body);

  // The tokens of the rendered conversation from the latest turn that fits; nothing if none does.
  std::optional<Tokens> tokens(const std::string& text, const engine::Tokenizer& tokenizer) const;

  // The latest turn that was found, and which message of the body it is; nothing if none was.
  struct Found {
    std::shared_ptr<const session::Turn> turn;
    std::size_t message = 0;
  };
  std::optional<Found> latest() const;

  // What to remember the answer to this body by; nothing for a body without messages.
  const std::optional<Digest>& conversation() const { return conversation_; }

  std::size_t n_found() const { return turns_.size(); }

 private:
  std::vector<Found> turns_;  // in order of the messages
  std::optional<Digest> conversation_;
};

}  // namespace coppice::api
