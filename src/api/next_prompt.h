// The known beginning of a conversation's next prompt (spec B25): what every prompt that can follow an answer begins
// with, whatever the user or the tools are going to say.
//
//   messages, the answer + "one thing"   --template, exact tokens--> tokens |
//   messages, the answer + "another"     --template, exact tokens--> tokens | what they have in common
//
// The conversation with each placeholder goes the way of a real request (api/continuation.h, the template, the
// tokenizer), so that nothing has to be known of the template: what it drops, moves or rewrites once an answer is no
// longer the last one, it does so here as well. What is prepared from it is looked up by its tokens as all else is, so
// a beginning that turns out to be none costs time and never shows.
//
// Pure functions but for the memory of turns; any thread. Takes as long as rendering and tokenizing the conversation a
// few times: some 0.1 to 1 s for 100,000 tokens, so not for a thread that somebody waits for.
#pragma once

#include <optional>
#include <stop_token>

#include "api/services.h"
#include "base/ids.h"
#include "base/json_fwd.h"
#include "chat/chat.h"

namespace coppice::api {

// `body`: the Chat Completions request that was answered. REQUIRES: it is normalised, and was rendered.
// After tool calls their results are expected, else a message of the user. Nothing if the template takes neither, or if
// nothing is certain, or if it was stopped, which is looked at between two renderings. At most as many tokens as fit
// into the context.
std::optional<Tokens> known_beginning(const Services& services, NamespaceId ns, const Json& body,
                                      const chat::Message& answer, const std::stop_token& stop = {});

}  // namespace coppice::api
