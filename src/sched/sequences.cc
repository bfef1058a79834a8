#include "sched/sequences.h"

#include <cassert>

#include "kv/prefix.h"

namespace coppice::sched {

Sequences::Sequences(engine::Runner& runner)
    : runner_(runner), cells_(runner.info().n_seqs), sequences_(static_cast<std::size_t>(runner.info().n_seqs)) {}

kv::Holder Sequences::holder(SeqId seq, const Tokens& prompt, NamespaceId ns) const {
  const bool visible = at(seq).ns == ns;
  return {seq, length(seq), visible ? kv::common_prefix(tokens(seq), prompt) : 0};
}

TokenPos Sequences::apply(SeqId seq, const kv::ReusePlan& plan, NamespaceId ns) {
  TokenPos folded = 0;
  if (plan.share > plan.keep) {
    clear(seq);
    runner_.share(*plan.donor, seq, 0, plan.share);
    cells_.share(*plan.donor, seq, 0, plan.share);
    const Tokens& donor = tokens(*plan.donor);
    at(seq).tokens.assign(donor.begin(), donor.begin() + plan.share);
  } else {
    cut(seq, plan.keep);
    if (plan.share > 0 && !cells_.same_cells(*plan.donor, seq, plan.share)) {
      const TokenPos before = cells_.used();
      [[maybe_unused]] const bool removed = runner_.remove(seq, 0, plan.share);
      assert(removed);  // a fold is planned only where the memory can do it
      cells_.remove(seq, 0, plan.share);
      runner_.share(*plan.donor, seq, 0, plan.share);
      cells_.share(*plan.donor, seq, 0, plan.share);
      folded = before - cells_.used();
    }
  }
  if (plan.donor) touch(*plan.donor);  // a prefix that others share is worth keeping
  at(seq).ns = ns;
  touch(seq);
  return folded;
}

// Removes everything from `length` on. REQUIRES: the memory can resume there, or length is 0.
void Sequences::cut(SeqId seq, TokenPos length) {
  if (length == this->length(seq)) return;
  if (length == 0) return clear(seq);
  [[maybe_unused]] const bool removed = runner_.remove(seq, length, -1);
  assert(removed);
  cells_.remove(seq, length, this->length(seq));
  at(seq).tokens.resize(static_cast<std::size_t>(length));
}

void Sequences::evaluated(SeqId seq, Token token) {
  cells_.append(seq, 1);
  at(seq).tokens.push_back(token);
}

void Sequences::clear(SeqId seq) {
  runner_.clear(seq);
  cells_.remove(seq, 0, length(seq));
  at(seq).tokens.clear();
  at(seq).ns = NamespaceId{};
}

void Sequences::check_invariants() const {
  cells_.check_invariants();
  for (std::int32_t i = 0; i < runner_.info().n_seqs; ++i) {
    assert(cells_.length(SeqId{i}) == length(SeqId{i}));
  }
  assert(cells_.used() <= runner_.info().n_cells);
}

}  // namespace coppice::sched
