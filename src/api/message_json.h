// An answer as a Chat Completions message: what clients are given, and send back.
#pragma once

#include "base/json_fwd.h"
#include "chat/chat.h"

namespace coppice::api {

Json message_json(const chat::Message& message);

}  // namespace coppice::api
