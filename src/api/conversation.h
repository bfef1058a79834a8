// What a conversation means, however a client serialises it: digests over its messages in a normal form (spec B23).
// Pure functions. A digest is SHA-256, so that two conversations meet only if they mean the same.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json_fwd.h"
#include "chat/chat.h"
#include "session/turn_memory.h"

namespace coppice::api {

using session::Digest;

Digest digest_of(std::string_view bytes);

// One digest for each message of a Chat Completions body: of the namespace, of what shapes the rendering beside the
// messages (tools, template arguments), and of the messages up to and including this one. Not part of it: how contents
// and tool-call arguments are written down, the ids of calls, reasoning. Nothing for a body without messages.
std::vector<Digest> conversation_digests(NamespaceId ns, const Json& body);

// Of what shapes the rendering beside the messages, and the rules of the answer; of the namespace, too.
Digest answer_shape_digest(NamespaceId ns, const Json& body);

// The digest after the model's own answer to that body. `before` is the last one of conversation_digests().
Digest digest_after(const Digest& before, const chat::Message& answer);

}  // namespace coppice::api
