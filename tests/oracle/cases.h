// The ways to reuse KV whose logits must equal those of a cold run, and the spoiled runs whose logits must not.
#pragma once

#include <string_view>
#include <vector>

#include "prompts.h"
#include "subject.h"

namespace coppice::oracle {

// What a case asks of the model's memory.
enum class Needs : std::uint8_t {
  nothing,    // every family can do it
  rewind,     // cuts a tail off, or starts in the middle of another sequence
  any_range,  // replaces cells under later ones: full attention only
  saving,     // saves ranges as bytes
  states,     // has a state beside its cells, and saves it
  cells,      // saves cells that hold something: not purely recurrent
};

struct Case {
  std::string_view name;
  Needs needs = Needs::nothing;
  bool exact = false;                                // same cells and same batches as the cold run: bit-identical
  Logits (*run)(Subject&, const Prompt&) = nullptr;  // REQUIRES: no sequence holds anything
};

// The whole prompt in a fresh sequence: the prefix in one batch, the tail in the next.
Logits cold(Subject& s, const Prompt& p);

const std::vector<Case>& valid_cases();
const std::vector<Case>& controls();

}  // namespace coppice::oracle
