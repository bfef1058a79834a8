#include "sched/cell_blocks.h"

#include <cassert>
#include <map>

namespace coppice::sched {

CellBlocks::CellBlocks(tier::Tiers& tiers, Sequences& sequences, RootOf root_of)
    : tiers_(tiers),
      sequences_(sequences),
      root_of_(std::move(root_of)),
      chains_(static_cast<std::size_t>(sequences.count())) {
  sequences_.observe(this);
}

CellBlocks::~CellBlocks() {
  sequences_.observe(nullptr);
  for (std::int32_t i = 0; i < sequences_.count(); ++i) shrinks(SeqId{i}, 0);
}

bool CellBlocks::known(const tier::Lease::Held& held) const {
  const tier::Entry* entry = tiers_.block(held.id);
  return entry != nullptr && entry->serial == held.serial;
}

std::optional<tier::BlockId> CellBlocks::before(SeqId seq, TokenPos at) const {
  if (at == 0) return root_of_(sequences_.namespace_of(seq));
  const Chain& chain = chains_[static_cast<std::size_t>(seq.value)];
  if (at % tiers_.block_tokens() != 0 || at > length(chain)) return std::nullopt;
  const auto& held = chain[static_cast<std::size_t>(at / tiers_.block_tokens()) - 1];
  return known(held) ? std::optional(held.id) : std::nullopt;
}

TokenPos CellBlocks::first_unsaved(SeqId seq, bool durable) const {
  TokenPos at = 0;
  for (const auto& held : chains_[static_cast<std::size_t>(seq.value)]) {
    const tier::Entry* entry = known(held) ? tiers_.block(held.id) : nullptr;
    if (entry == nullptr || !entry->saved() || (durable && entry->disk == tier::DiskState::none)) break;
    at += tiers_.block_tokens();
  }
  return at;
}

void CellBlocks::grew(SeqId seq) {
  Chain& chain = this->chain(seq);
  const TokenPos n = tiers_.block_tokens(), held = sequences_.length(seq);
  if (length(chain) + n > held || !sequences_.tree().contains(seq)) return;
  while (!chain.empty() && !known(chain.back())) chain.pop_back();  // a bad block was taken out, with all behind it
  while (length(chain) + n <= held) {
    const TokenPos begin = length(chain);
    tier::Block block{.id = {},
                      .parent = chain.empty() ? root_of_(sequences_.namespace_of(seq)) : chain.back().id,
                      .begin = begin,
                      .tokens = sequences_.tree().tokens(seq, begin, begin + n),
                      .state = nullptr};
    block.id = tier::id_of(block.parent, block.tokens);
    const tier::BlockId id = block.id;
    const auto serial = tiers_.enter_cells(std::move(block));
    if (!serial) return;
    chain.push_back({id, *serial});
  }
}

void CellBlocks::shared(SeqId from, SeqId to) {
  Chain &source = chain(from), &copy = chain(to);
  for (std::size_t i = copy.size(); i < source.size(); ++i) {
    if (static_cast<TokenPos>(i + 1) * tiers_.block_tokens() > sequences_.length(to) || !known(source[i])) break;
    copy.push_back(source[i]);
    tiers_.enter_cells(source[i].id);
  }
}

void CellBlocks::shrinks(SeqId seq, TokenPos length_left) {
  Chain& chain = this->chain(seq);
  for (; length(chain) > length_left; chain.pop_back()) tiers_.leave_cells(chain.back().id, chain.back().serial);
}

// The tiers' counts are those of the chains, too.
void CellBlocks::check_invariants() const {
  std::map<tier::BlockId, std::int32_t> in_cells;
  for (std::int32_t i = 0; i < sequences_.count(); ++i) {
    const Chain& chain = chains_[static_cast<std::size_t>(i)];
    assert(length(chain) <= sequences_.length(SeqId{i}));
    for (const auto& held : chain) in_cells[held.id] += known(held) ? 1 : 0;
  }
  for ([[maybe_unused]] const auto& [id, count] : in_cells) {
    assert(tiers_.block(id) == nullptr ? count == 0 : count == tiers_.block(id)->in_cells);
  }
}

}  // namespace coppice::sched
