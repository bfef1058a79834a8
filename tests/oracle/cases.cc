#include "cases.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace coppice::oracle {
namespace {

const SeqId a(0), b(1), c(2);

Logits tail(Subject& s, SeqId seq, const Prompt& p, TokenPos from) {
  return s.decode(seq, p.tokens, from, p.length(), p.compared);
}

void prefix(Subject& s, SeqId seq, const Prompt& p) { s.decode(seq, p.tokens, 0, p.shared); }

// Decodes `n` tokens of the other conversation behind position `from`.
void wander_off(Subject& s, SeqId seq, const Prompt& p, TokenPos from, TokenPos n) {
  s.decode(seq, p.foreign, from, from + n);
}

Logits in_one_batch(Subject& s, const Prompt& p) { return s.decode(a, p.tokens, 0, p.length(), p.compared); }
Logits in_chunks_of_7(Subject& s, const Prompt& p) { return s.decode(a, p.tokens, 0, p.length(), p.compared, 7); }
Logits in_chunks_of_64(Subject& s, const Prompt& p) { return s.decode(a, p.tokens, 0, p.length(), p.compared, 64); }

Logits tail_token_by_token(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  return s.decode(a, p.tokens, p.shared, p.length(), p.compared, 1);
}

Logits shared(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  s.share(a, b, 0, p.shared);
  return tail(s, b, p, p.shared);
}

Logits donor_gone(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  s.share(a, b, 0, p.shared);
  s.runner().clear(a);
  return tail(s, b, p, p.shared);
}

Logits forked_twice(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  s.share(a, b, 0, p.shared);
  const TokenPos further = p.shared + 4;
  s.decode(b, p.tokens, p.shared, further);
  s.share(b, c, 0, further);
  wander_off(s, b, p, further, 8);
  return tail(s, c, p, further);
}

// Donor and fork go on in the same batches, each with its own tokens.
Logits donor_busy(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  s.share(a, b, 0, p.shared);
  Logits out;
  for (TokenPos pos = p.shared; pos < p.length(); ++pos) {
    const auto i = static_cast<std::size_t>(pos);
    const Logits row = s.decode_together(std::vector{b, a}, std::vector{p.tokens[i], p.foreign[i]}, pos);
    if (pos >= p.length() - p.compared) out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

// Cells of sequences that came and went lie between the prompt's.
Logits fragmented(Subject& s, const Prompt& p) {
  constexpr TokenPos step = 12;
  for (TokenPos pos = 0; pos < p.shared; pos += step) {
    s.decode(b, p.foreign, pos, pos + step);
    s.decode(c, p.foreign, pos, pos + step);
  }
  s.runner().clear(b);
  return cold(s, p);
}

Logits shared_when_fragmented(Subject& s, const Prompt& p) {
  fragmented(s, p);
  s.runner().clear(b);
  s.runner().clear(a);
  prefix(s, a, p);
  s.runner().clear(c);
  s.share(a, b, 0, p.shared);
  return tail(s, b, p, p.shared);
}

Logits donor_longer(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  wander_off(s, a, p, p.shared, 24);
  s.share(a, b, 0, p.shared);
  return tail(s, b, p, p.shared);
}

Logits truncated(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  wander_off(s, a, p, p.shared, 24);
  EXPECT_TRUE(s.remove(a, p.shared, -1));
  return tail(s, a, p, p.shared);
}

Logits tail_again(Subject& s, const Prompt& p) {
  cold(s, p);
  EXPECT_TRUE(s.remove(a, p.shared, -1));
  return tail(s, a, p, p.shared);
}

// A sequence that computed its prefix itself gives it up for the donor's, under the tokens that follow.
Logits folded(Subject& s, const Prompt& p) {
  const TokenPos further = p.shared + 4;
  prefix(s, a, p);
  s.decode(b, p.tokens, 0, further);
  EXPECT_TRUE(s.remove(b, 0, p.shared));
  s.share(a, b, 0, p.shared);
  return tail(s, b, p, further);
}

// As above, where only the later part of the prefix is in cells of its own.
Logits folded_in_the_middle(Subject& s, const Prompt& p) {
  const TokenPos half = p.shared / 2, further = p.shared + 4;
  prefix(s, a, p);
  s.share(a, b, 0, half);
  s.decode(b, p.tokens, half, further);
  EXPECT_TRUE(s.remove(b, half, p.shared));
  s.share(a, b, half, p.shared);
  return tail(s, b, p, further);
}

// Others have forked off and gone on; now somebody comes back to where it was left.
Logits parked(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  s.share(a, b, 0, p.shared);
  wander_off(s, b, p, p.shared, 24);
  s.runner().clear(b);
  s.decode(c, p.foreign, 0, p.shared);
  return tail(s, a, p, p.shared);
}

// The follower starts the moment the leader has computed what they share, and both prefill on in pieces.
Logits coalesced(Subject& s, const Prompt& p) {
  s.decode(a, p.tokens, 0, p.shared / 2);
  s.decode(a, p.tokens, p.shared / 2, p.shared);
  s.share(a, b, 0, p.shared);
  wander_off(s, a, p, p.shared, 10);
  const TokenPos middle = p.shared + (p.length() - p.compared - p.shared) / 2;
  s.decode(b, p.tokens, p.shared, middle);
  s.decode(a, p.foreign, p.shared + 10, p.shared + 20);
  return s.decode(b, p.tokens, middle, p.length(), p.compared);
}

// Eviction took the end of the sequence, and it was computed again.
Logits end_evicted(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  s.share(a, b, 0, p.shared / 2);  // its beginning is shared, so that it stays
  EXPECT_TRUE(s.remove(a, p.shared / 2, -1));
  s.decode(c, p.foreign, 0, p.shared / 3);  // takes some of the cells
  s.decode(a, p.tokens, p.shared / 2, p.shared);
  return tail(s, a, p, p.shared);
}

using Bytes = std::vector<std::byte>;

Bytes save_cells(Subject& s, SeqId seq, TokenPos begin, TokenPos end) {
  Bytes bytes = s.runner().save(seq, begin, end, engine::SaveKind::cells);
  EXPECT_FALSE(bytes.empty());
  return bytes;
}

Bytes save_checkpoint(Subject& s, SeqId seq, TokenPos begin, TokenPos end) {
  Bytes bytes = s.runner().save(seq, begin, end, engine::SaveKind::checkpoint);
  EXPECT_FALSE(bytes.empty());
  return bytes;
}

void restore(Subject& s, SeqId seq, TokenPos begin, TokenPos end, const engine::Runner::Saved& saved) {
  EXPECT_TRUE(s.runner().restore(seq, begin, end, saved));
}

// Takes all of `from`, which ends at `end`, into `to` by way of saved bytes, `step` tokens at a time.
void by_bytes(Subject& s, SeqId from, SeqId to, TokenPos end, TokenPos step) {
  std::vector<Bytes> saved;
  for (TokenPos at = 0; at < end; at += step) {
    saved.push_back(at + step < end ? save_cells(s, from, at, at + step) : save_checkpoint(s, from, at, end));
  }
  s.runner().clear(from);
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const TokenPos begin = static_cast<TokenPos>(i) * step, last = std::min(begin + step, end);
    restore(s, to, begin, last, {begin, last, saved[i]});
    EXPECT_TRUE(last == end || s.rewind() == engine::Rewind::anywhere || !s.runner().can_resume(to, last, last));
  }
  EXPECT_TRUE(s.runner().can_resume(to, end, end));
}

// Out of the cells and back in, block by block (the tiers).
Logits saved_and_restored(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  by_bytes(s, a, b, p.shared, Prompt::block_size);
  return tail(s, b, p, p.shared);
}

// Other tokens have taken the cells meanwhile.
Logits restored_into_other_cells(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  s.share(a, c, 0, p.shared);
  by_bytes(s, a, b, p.shared, 48);
  s.runner().clear(c);
  return tail(s, b, p, p.shared);
}

// Some of it was still in cells, the last block is used in part.
Logits restored_behind_a_shared_part(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  const TokenPos cut = p.shared / 3, block_end = std::min(p.shared + 5, p.length());
  s.decode(a, p.tokens, p.shared, block_end);
  const Bytes block = save_cells(s, a, 0, block_end);
  s.share(a, b, 0, cut);
  s.runner().clear(a);
  restore(s, b, cut, p.shared, {0, block_end, block});
  return tail(s, b, p, p.shared);
}

// The cells are all there, in a sequence that has gone on elsewhere: only the state comes back.
Logits state_restored(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  const TokenPos begin = p.shared - 16;
  const Bytes checkpoint = save_checkpoint(s, a, begin, p.shared);
  wander_off(s, a, p, p.shared, 24);
  s.runner().share_cells(a, b, p.shared);
  EXPECT_FALSE(s.runner().can_resume(b, p.shared, p.shared));
  restore(s, b, p.shared, p.shared, {begin, p.shared, checkpoint});
  return tail(s, b, p, p.shared);
}

// A beginning of the cells is there, the others and the state come back, and the donor goes on beside it.
Logits checkpoint_behind_shared_cells(Subject& s, const Prompt& p) {
  const TokenPos cut = p.shared / 3, begin = p.shared - 16;
  prefix(s, a, p);
  const Bytes cells = save_cells(s, a, cut - 10, begin), checkpoint = save_checkpoint(s, a, begin, p.shared);
  wander_off(s, a, p, p.shared, 24);
  s.runner().share_cells(a, b, cut);
  s.decode(a, p.foreign, p.shared + 24, p.shared + 27);
  restore(s, b, cut, begin, {cut - 10, begin, cells});
  restore(s, b, begin, p.shared, {begin, p.shared, checkpoint});
  s.decode(a, p.foreign, p.shared + 27, p.shared + 30);
  return tail(s, b, p, p.shared);
}

// A checkpoint on the way of a sequence that goes on computing, restored twice into forks.
Logits checkpoint_twice(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  const Bytes checkpoint = save_checkpoint(s, a, 0, p.shared);
  s.decode(a, p.tokens, p.shared, p.length());
  for (const SeqId seq : {c, b}) restore(s, seq, 0, p.shared, {0, p.shared, checkpoint});
  wander_off(s, c, p, p.shared, 8);
  return tail(s, b, p, p.shared);
}

// The bytes of another conversation's block between the right ones.
Logits foreign_bytes(Subject& s, const Prompt& p) {
  const TokenPos end = p.block + Prompt::block_size;
  prefix(s, a, p);
  s.decode(c, p.foreign, 0, end);
  const Bytes before = save_cells(s, a, 0, p.block), wrong = save_cells(s, c, p.block, end);
  const Bytes behind = save_checkpoint(s, a, end, p.shared);
  s.runner().clear(a);
  s.runner().clear(c);
  restore(s, b, 0, p.block, {0, p.block, before});
  restore(s, b, p.block, end, {p.block, end, wrong});
  restore(s, b, end, p.shared, {end, p.shared, behind});
  return tail(s, b, p, p.shared);
}

// The right cells with another conversation's state.
Logits foreign_state(Subject& s, const Prompt& p) {
  const TokenPos begin = p.shared - 16;
  prefix(s, a, p);
  s.decode(c, p.foreign, 0, p.shared);
  const Bytes wrong = save_checkpoint(s, c, begin, p.shared);
  s.runner().share_cells(a, b, p.shared);
  restore(s, b, p.shared, p.shared, {begin, p.shared, wrong});
  return tail(s, b, p, p.shared);
}

// The sequence with the highest id.
Logits last_sequence(Subject& s, const Prompt& p) {
  const SeqId last(s.runner().info().n_seqs - 1);
  prefix(s, a, p);
  s.share(a, last, 0, p.shared);
  s.runner().clear(a);
  return tail(s, last, p, p.shared);
}

// The tail on a prefix that was computed from other tokens.
Logits tail_on(Subject& s, const Prompt& p, const Tokens& wrong) {
  const TokenPos end = static_cast<TokenPos>(wrong.size()), begin = end - (p.length() - p.shared);
  s.decode(a, wrong, 0, begin);
  return s.decode(a, wrong, begin, end, p.compared);
}

// The block's cells taken away. Memory that cannot do that gets a prompt without the block.
Logits missing_block(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  if (s.rewind() != engine::Rewind::never && s.remove(a, p.block, p.block + Prompt::block_size)) {
    return tail(s, a, p, p.shared);
  }
  s.runner().clear(a);
  return tail_on(s, p, without_block(p));
}

Logits foreign_block(Subject& s, const Prompt& p) { return tail_on(s, p, with_foreign_block(p)); }
Logits shifted(Subject& s, const Prompt& p) { return tail_on(s, p, shifted_by_one(p)); }
Logits one_token_changed(Subject& s, const Prompt& p) { return tail_on(s, p, with_one_token_changed(p)); }

}  // namespace

Logits cold(Subject& s, const Prompt& p) {
  prefix(s, a, p);
  return tail(s, a, p, p.shared);
}

const std::vector<Case>& valid_cases() {
  using enum Needs;
  static const std::vector<Case> all = {
      {"cold again", nothing, true, cold},
      {"one batch", nothing, false, in_one_batch},
      {"chunks of 7", nothing, false, in_chunks_of_7},
      {"chunks of 64", nothing, false, in_chunks_of_64},
      {"tail by token", nothing, false, tail_token_by_token},
      {"shared", nothing, true, shared},
      {"shared, donor gone", nothing, true, donor_gone},
      {"forked twice", nothing, false, forked_twice},
      {"donor busy", nothing, false, donor_busy},
      {"fragmented cells", nothing, false, fragmented},
      {"shared, fragmented", nothing, false, shared_when_fragmented},
      {"parked", nothing, false, parked},
      {"coalesced", nothing, false, coalesced},
      {"last sequence", nothing, true, last_sequence},
      {"donor longer", rewind, false, donor_longer},
      {"truncated", rewind, true, truncated},
      {"tail again", rewind, true, tail_again},
      {"end evicted", rewind, false, end_evicted},
      {"prefix folded", any_range, false, folded},
      {"middle folded", any_range, false, folded_in_the_middle},
      {"saved and restored", saving, true, saved_and_restored},
      {"restored, other cells", saving, false, restored_into_other_cells},
      {"restored in part", any_range, false, restored_behind_a_shared_part},
      {"state restored", states, false, state_restored},
      {"behind shared cells", states, false, checkpoint_behind_shared_cells},
      {"checkpoint twice", states, false, checkpoint_twice},
  };
  return all;
}

const std::vector<Case>& controls() {
  static const std::vector<Case> all = {
      {"missing block", Needs::nothing, false, missing_block},
      {"foreign block", Needs::nothing, false, foreign_block},
      {"shifted by one", Needs::nothing, false, shifted},
      {"one token changed", Needs::nothing, false, one_token_changed},
      {"foreign bytes", Needs::cells, false, foreign_bytes},
      {"foreign state", Needs::states, false, foreign_state},
  };
  return all;
}

}  // namespace coppice::oracle
