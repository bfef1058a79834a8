// What llama-server v0.4.0 keeps of prompts and which slot it takes, told again for the simulation:
//
// - A request goes to the free slot whose tokens have most in common with it, if that is more than a tenth of it; else
//   to the one unused for longest. It can use only what its slot holds.
// - The host cache holds whole prompts, oldest first out. A slot that is taken over with less than half of its tokens
//   kept is copied there first, and then the cached prompt that has more in common with the request, of itself and of
//   the request both, is moved into the slot. A prompt that a longer cached one begins with is not stored, one that
//   begins a new one is dropped.
// - When a request starts, all idle slots are copied to the host cache; with unified cells they are emptied, too.
// - Each step evaluates a token of every answer and then prompts, up to 2,048 tokens.
//
// With unified cells all slots' cells count for the time of a step, else those of the longest running one alone.
// Threading: none.
#pragma once

#include <memory>

#include "simulate/costs.h"
#include "simulate/server.h"

namespace coppice::simulate {

enum class Cells : std::uint8_t {
  unified,  // as without any option
  split,    // each slot has its own, as with -np
};

// REQUIRES: each slot's share of the cells holds any request. `costs` and `clock` must outlive it.
std::unique_ptr<Server> make_llama_server(const Room& room, Cells cells, const Costs& costs, ManualClock& clock,
                                          Listener listener);

}  // namespace coppice::simulate
