// The prompt of a conversation that goes on, known before its whole was rendered.
//
// Rendering costs time with the length of the conversation (and with its square for some templates), on every turn.
// But almost always the prompt is the last turn's tokens and then what is new. So that much is guessed from a short
// conversation, its beginning and its end alone, and the engine starts on it while the whole is rendered:
//
//   guess --submit--> engine restores and prefills
//     |                                             same:  the events of the engine are handled from here on
//     +--------> render_chat(), the whole  --check--
//                                                   other: that request is cancelled, the right one submitted
//
// Nothing of an answer is looked at before the check, so a wrong guess costs time and never shows.
#pragma once

#include <optional>

#include "api/chat_render.h"
#include "api/output_rules.h"

namespace coppice::api {

// What the output rules of this body depend on, as far as one can tell without rendering.
Digest output_kind(NamespaceId ns, const Json& body);

// Nothing when no turn of ours is in the body, or too little is known. Has no `turn`, as that takes the whole text.
// REQUIRES: as render_chat().
// `kind`: output_kind() of the body.
std::optional<RenderedChat> guess_chat(const Services& services, OutputRules& rules, const Continuation& continuation,
                                       const Digest& kind, const Json& body);

// Whether a request that was made from `guess` is the one to be made from `whole`.
bool same_request(const RenderedChat& guess, const RenderedChat& whole);

}  // namespace coppice::api
