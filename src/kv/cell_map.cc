#include "kv/cell_map.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace coppice::kv {

CellMap::CellMap(std::int32_t n_seqs) : seqs_(static_cast<std::size_t>(n_seqs)) {}

CellMap::ExtentId CellMap::make_extent(TokenPos begin, TokenPos length, std::int32_t holders) {
  if (free_.empty()) {
    extents_.push_back({begin, length, holders});
    return static_cast<ExtentId>(extents_.size() - 1);
  }
  const ExtentId id = free_.back();
  free_.pop_back();
  extent(id) = {begin, length, holders};
  return id;
}

void CellMap::append(SeqId seq, TokenPos count) {
  assert(count >= 0);
  if (count == 0) return;
  used_ += count;
  auto& ids = list(seq);
  // Growing the last extent keeps the list short; a shared one must not grow, as its other holders do not see the new
  // cells.
  if (!ids.empty() && extent(ids.back()).holders == 1) {
    extent(ids.back()).length += count;
  } else {
    ids.push_back(make_extent(length(seq), count, 1));
  }
}

// Makes `at` a boundary between extents of `seq`, for every holder of the extent that spans it.
void CellMap::split(SeqId seq, TokenPos at) {
  const auto& ids = list(seq);
  const auto spans =
      std::find_if(ids.begin(), ids.end(), [&](ExtentId id) { return extent(id).begin < at && at < extent(id).end(); });
  if (spans == ids.end()) return;
  const ExtentId head = *spans;
  const Extent whole = extent(head);
  const ExtentId tail = make_extent(at, whole.end() - at, whole.holders);
  extent(head).length = at - whole.begin;
  for (auto& holder : seqs_) {
    const auto it = std::find(holder.begin(), holder.end(), head);
    if (it != holder.end()) holder.insert(it + 1, tail);
  }
}

void CellMap::share(SeqId from, SeqId to, TokenPos begin, TokenPos end) {
  assert(from != to && 0 <= begin && end <= length(from));
  if (begin >= end) return;
  split(from, begin);
  split(from, end);
  auto& ids = list(to);
  auto at = std::find_if(ids.begin(), ids.end(), [&](ExtentId id) { return extent(id).begin >= begin; });
  assert(at == ids.end() || extent(*at).begin >= end);
  for (ExtentId id : list(from)) {
    if (extent(id).begin < begin || extent(id).end() > end) continue;
    at = ids.insert(at, id) + 1;
    ++extent(id).holders;
  }
}

void CellMap::remove(SeqId seq, TokenPos begin, TokenPos end) {
  split(seq, begin);
  split(seq, end);
  std::erase_if(list(seq), [&](ExtentId id) {
    Extent& e = extent(id);
    if (e.begin < begin || e.end() > end) return false;
    if (--e.holders == 0) {
      used_ -= e.length;
      free_.push_back(id);
    }
    return true;
  });
}

TokenPos CellMap::length(SeqId seq) const { return list(seq).empty() ? 0 : extent(list(seq).back()).end(); }

TokenPos CellMap::exclusive(SeqId seq) const {
  TokenPos count = 0;
  for (ExtentId id : list(seq)) {
    if (extent(id).holders == 1) count += extent(id).length;
  }
  return count;
}

TokenPos CellMap::kept_by(std::span<const Keep> keeps) const {
  std::map<ExtentId, TokenPos> kept;  // how much of each extent, from its begin: cuts are at the end of sequences
  for (const Keep& keep : keeps) {
    for (ExtentId id : list(keep.seq)) {
      const TokenPos part = std::min(extent(id).end(), keep.upto) - extent(id).begin;
      if (part <= 0) break;
      TokenPos& most = kept[id];
      most = std::max(most, part);
    }
  }
  TokenPos count = 0;
  for (const auto& [id, part] : kept) count += part;
  return count;
}

TokenPos CellMap::exclusive_tail(SeqId seq) const {
  TokenPos count = 0;
  const auto& ids = list(seq);
  for (auto id = ids.rbegin(); id != ids.rend() && extent(*id).holders == 1; ++id) count += extent(*id).length;
  return count;
}

std::optional<CellMap::Range> CellMap::first_difference(SeqId a, SeqId b, TokenPos begin, TokenPos end) const {
  assert(begin <= end && end <= length(a) && end <= length(b));
  const auto& x = list(a);
  const auto& y = list(b);
  std::optional<Range> found;
  // Extents that both list are the same object, so comparing ids piece by piece compares cells.
  for (std::size_t i = 0, j = 0; begin < end;) {
    while (extent(x[i]).end() <= begin) ++i;
    while (extent(y[j]).end() <= begin) ++j;
    const TokenPos piece_end = std::min({extent(x[i]).end(), extent(y[j]).end(), end});
    if (x[i] != y[j]) {
      if (!found) found = Range{begin, begin};
      found->end = piece_end;
    } else if (found) {
      break;
    }
    begin = piece_end;
  }
  return found;
}

void CellMap::check_invariants() const {
  std::vector<std::int32_t> holders(extents_.size(), 0);
  for (const auto& ids : seqs_) {
    [[maybe_unused]] TokenPos at = 0;
    for (ExtentId id : ids) {
      assert(extent(id).begin >= at && extent(id).length > 0);
      at = extent(id).end();
      ++holders[static_cast<std::size_t>(id)];
    }
  }
  [[maybe_unused]] TokenPos used = 0;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    assert(holders[i] == extents_[i].holders);
    if (holders[i] > 0) used += extents_[i].length;
  }
  assert(used == used_);
}

}  // namespace coppice::kv
