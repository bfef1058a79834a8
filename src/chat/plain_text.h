// Whether a template's text can be had without what belongs to the answer.
//
// The library finds out how a template writes tool calls by rendering it dozens of times, on every request. Told that
// the output is content alone, it skips that; but some templates' messages it then renders as they come, which it
// otherwise adapts to them first. So both ways are tried at start-up.
#pragma once

#include "chat/late_system.h"

namespace coppice::chat {

// Whether both render the same, byte for byte, of conversations with every kind of message; what one refuses the other
// must refuse. False when both refuse all.
bool render_alike(const RenderMessages& one, const RenderMessages& other);

}  // namespace coppice::chat
