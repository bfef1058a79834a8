#include "sched/sequences.h"

#include <algorithm>
#include <cassert>

namespace coppice::sched {

Sequences::Sequences(engine::Runner& runner, const Clock& clock)
    : runner_(runner),
      clock_(clock),
      cells_(runner.info().n_seqs),
      tree_(runner.info().n_seqs),
      leases_(runner.info().n_seqs),
      sequences_(static_cast<std::size_t>(runner.info().n_seqs)) {}

std::vector<TokenPos> Sequences::held(std::vector<TokenPos> common) const {
  for (std::int32_t i = 0; i < count(); ++i) {
    TokenPos& n = common[static_cast<std::size_t>(i)];
    n = std::min(n, at(SeqId{i}).length);
  }
  return common;
}

void Sequences::touch(SeqId seq) {
  notes(seq).last_touch = ++touches_;
  notes(seq).touched_at = clock_.now();
}

std::optional<SeqId> Sequences::acquire() {
  const auto it = std::find_if(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return !s.in_use; });
  if (it == sequences_.end()) return std::nullopt;
  it->in_use = true;
  ++in_use_;
  const SeqId seq{static_cast<std::int32_t>(it - sequences_.begin())};
  touch(seq);
  return seq;
}

void Sequences::share(SeqId from, SeqId to, TokenPos length) {
  assert(at(to).in_use && at(to).length == 0 && 0 < length && length <= at(from).length);
  runner_.share(from, to, 0, length);
  shared(from, to, length);
}

void Sequences::share_cells(SeqId from, SeqId to, TokenPos length) {
  assert(at(to).in_use && at(to).length == 0 && 0 < length && length <= at(from).length);
  runner_.share_cells(from, to, length);
  shared(from, to, length);
}

void Sequences::shared(SeqId from, SeqId to, TokenPos length) {
  cells_.share(from, to, 0, length);
  at(to).length = length;
  touch(from);  // a prefix that others share is worth keeping
  touch(to);
  if (observer_ != nullptr) observer_->shared(from, to);
}

void Sequences::cut(SeqId seq, TokenPos length) {
  if (length == at(seq).length) return settle(seq);
  shrinks(seq, length);
  [[maybe_unused]] const bool removed = runner_.remove(seq, length, -1);
  assert(removed);
  cells_.remove(seq, length, at(seq).length);
  at(seq).length = length;
  settle(seq);
}

void Sequences::promise(SeqId seq, NamespaceId ns, const Tokens& tokens) {
  assert(at(seq).in_use && at(seq).length <= static_cast<TokenPos>(tokens.size()));
  tree_.assign(seq, ns, tokens);
  at(seq).ns = ns;
  grew(seq);
}

void Sequences::settle(SeqId seq) {
  if (tree_.contains(seq)) tree_.truncate(seq, at(seq).length);
}

void Sequences::evaluated(SeqId seq, Token token) {
  cells_.append(seq, 1);
  if (tree_.contains(seq) && at(seq).length == tree_.length(seq)) tree_.append(seq, token);
  ++at(seq).length;
  grew(seq);
}

bool Sequences::restore(SeqId seq, TokenPos end, const engine::Runner::Saved& saved) {
  const TokenPos begin = at(seq).length;
  assert(tree_.contains(seq) && begin <= end && end <= tree_.length(seq));
  if (!runner_.restore(seq, begin, end, saved)) return false;
  if (begin < end) cells_.append(seq, end - begin);
  at(seq).length = end;
  grew(seq);
  return true;
}

// `to` gives up its own cells at these positions for `from`'s.
void Sequences::take_cells_of(SeqId from, SeqId to, kv::CellMap::Range range) {
  [[maybe_unused]] const bool removed = runner_.remove(to, range.begin, range.end);
  assert(removed);
  cells_.remove(to, range.begin, range.end);
  runner_.share(from, to, range.begin, range.end);
  cells_.share(from, to, range.begin, range.end);
}

std::vector<TokenPos> Sequences::held_in_common(SeqId seq) const {
  std::vector<TokenPos> common = tree_.common_with(seq);
  for (std::int32_t i = 0; i < count(); ++i) {
    TokenPos& n = common[static_cast<std::size_t>(i)];
    n = SeqId{i} == seq ? 0 : std::min({n, at(seq).length, at(SeqId{i}).length});
  }
  return common;
}

TokenPos Sequences::fold(SeqId seq) {
  if (!rewinds_anywhere() || !tree_.contains(seq)) return 0;
  const TokenPos before = cells_.used();
  const std::vector<TokenPos> common = held_in_common(seq);
  for (std::int32_t i = 0; i < count(); ++i) {
    const TokenPos end = common[static_cast<std::size_t>(i)];
    for (auto range = cells_.first_difference(seq, SeqId{i}, 0, end); range;
         range = cells_.first_difference(seq, SeqId{i}, range->end, end)) {
      take_cells_of(seq, SeqId{i}, *range);
    }
  }
  return before - cells_.used();
}

bool Sequences::covered(SeqId seq) const {
  if (at(seq).length == 0) return true;
  return rewinds_anywhere() && tree_.contains(seq) && std::ranges::max(held_in_common(seq)) == at(seq).length;
}

std::vector<SeqId> Sequences::covered_by(SeqId seq) const {
  std::vector<SeqId> result;
  if (!rewinds_anywhere() || !tree_.contains(seq)) return result;
  const std::vector<TokenPos> common = held_in_common(seq);
  for (std::int32_t i = 0; i < count(); ++i) {
    const TokenPos n = common[static_cast<std::size_t>(i)];
    if (n > 0 && n == at(SeqId{i}).length) result.push_back(SeqId{i});
  }
  return result;
}

namespace {

TokenPos trimmed_at_once(TokenPos cells) {
  constexpr TokenPos kStep = 64;
  return std::max(1, (cells + kStep - 1) / kStep) * kStep;
}

}  // namespace

bool Sequences::can_trim(SeqId seq, TokenPos cells) const {
  const TokenPos count = trimmed_at_once(cells);
  return rewinds_anywhere() && cells_.exclusive_tail(seq) >= count && at(seq).length > count;
}

TokenPos Sequences::length_after_trim(SeqId seq, TokenPos cells) const {
  return at(seq).length - trimmed_at_once(cells);
}

void Sequences::trim(SeqId seq, TokenPos cells) {
  assert(can_trim(seq, cells));
  cut(seq, length_after_trim(seq, cells));
}

void Sequences::clear(SeqId seq) {
  assert(at(seq).in_use && !leases_.held(seq));
  shrinks(seq, 0);
  runner_.clear(seq);  // whatever is known to be there: after a failed batch the runner may hold more
  cells_.remove(seq, 0, at(seq).length);
  if (tree_.contains(seq)) tree_.truncate(seq, 0);
  at(seq) = Sequence{};
  --in_use_;
}

void Sequences::check_invariants() const {
  cells_.check_invariants();
  tree_.check_invariants();
  [[maybe_unused]] std::int32_t used = 0;
  for (std::int32_t i = 0; i < count(); ++i) {
    const SeqId seq{i};
    used += at(seq).in_use ? 1 : 0;
    assert(cells_.length(seq) == at(seq).length);
    assert(!tree_.contains(seq) || tree_.length(seq) >= at(seq).length);
    assert(at(seq).in_use || (at(seq).length == 0 && !tree_.contains(seq) && !leases_.held(seq)));
  }
  assert(used == in_use_);
  assert(cells_.used() <= runner_.info().n_cells);
}

}  // namespace coppice::sched
