#include "kv/cell_map.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <set>

#include "kv/test_ids.h"

namespace coppice::kv {
namespace {

TEST(CellMap, A8_SharedPrefixCountsOnce) {
  CellMap cells(3);
  cells.append(a, 1000);
  for (SeqId agent : {b, c}) {
    cells.share(a, agent, 0, 1000);
    cells.append(agent, 50);
  }
  EXPECT_EQ(cells.used(), 1000 + 2 * 50);
  EXPECT_EQ(cells.exclusive(b), 50);
  EXPECT_EQ(cells.exclusive(a), 0);
  EXPECT_EQ(cells.length(b), 1050);
}

TEST(CellMap, DonorMayGoAwayFirst) {
  CellMap cells(3);
  cells.append(a, 100);
  cells.share(a, b, 0, 60);
  cells.remove(a, 0, 100);
  EXPECT_EQ(cells.used(), 60);
  EXPECT_EQ(cells.exclusive(b), 60);
}

TEST(CellMap, KeptByCutsAndSharesCountOnce) {
  CellMap cells(3);
  cells.append(a, 100);
  cells.share(a, b, 0, 60);
  cells.append(b, 10);
  const CellMap::Keep keeps[] = {{a, 30}, {b, 65}};
  EXPECT_EQ(cells.kept_by(keeps), 65);
}

TEST(CellMap, EqualLengthIsNotTheSameCells) {
  CellMap cells(3);
  cells.append(a, 100);
  cells.append(b, 100);
  cells.share(a, c, 0, 50);
  cells.append(c, 50);
  EXPECT_EQ(cells.first_difference(a, b, 0, 50)->end, 50);
  EXPECT_FALSE(cells.first_difference(a, c, 0, 50));
  EXPECT_EQ(cells.first_difference(a, c, 0, 100)->begin, 50);
  EXPECT_EQ(cells.first_difference(a, c, 60, 100)->begin, 60);
}

TEST(CellMap, ExclusiveTailEndsAtTheFirstSharedCell) {
  CellMap cells(3);
  cells.append(a, 100);
  cells.share(a, b, 0, 60);
  EXPECT_EQ(cells.exclusive_tail(a), 40);
  EXPECT_EQ(cells.exclusive_tail(b), 0);
  EXPECT_EQ(cells.exclusive_tail(c), 0);
}

// The naive model: every cell is an object, every sequence a list of pointers to cells by position.
struct OneObjectPerCell {
  std::vector<std::vector<std::shared_ptr<int>>> seqs;
  TokenPos used() const {
    std::set<const int*> distinct;
    for (const auto& s : seqs) {
      for (const auto& cell : s) distinct.insert(cell.get());
    }
    return static_cast<TokenPos>(distinct.size());
  }
  TokenPos exclusive(std::size_t s) const {
    TokenPos n = 0;
    for (const auto& cell : seqs[s]) n += cell.use_count() == 1 ? 1 : 0;
    return n;
  }
};

RC_GTEST_PROP(CellMap, AgreesWithOneObjectPerCell, ()) {
  constexpr int n_seqs = 5;
  CellMap cells(n_seqs);
  OneObjectPerCell naive{std::vector<std::vector<std::shared_ptr<int>>>(n_seqs)};
  const auto pick = [] { return static_cast<std::size_t>(*rc::gen::inRange(0, n_seqs)); };
  const int n_steps = *rc::gen::inRange(0, 60);
  for (int step = 0; step < n_steps; ++step) {
    const std::size_t x = pick(), y = pick();
    const SeqId seq{static_cast<int>(x)}, other{static_cast<int>(y)};
    auto& mine = naive.seqs[x];
    auto& theirs = naive.seqs[y];
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        for (int n = *rc::gen::inRange(0, 20); n > 0; --n)
          mine.push_back(std::make_shared<int>(0)), cells.append(seq, 1);
        break;
      case 1: {  // cut
        const int at = *rc::gen::inRange(0, static_cast<int>(mine.size()) + 1);
        mine.resize(static_cast<std::size_t>(at));
        cells.remove(seq, at, cells.length(seq));
        break;
      }
      case 2: {  // start over from another's prefix
        if (x == y) break;
        const int end = *rc::gen::inRange(0, static_cast<int>(theirs.size()) + 1);
        cells.remove(seq, 0, cells.length(seq));
        cells.share(other, seq, 0, end);
        mine.assign(theirs.begin(), theirs.begin() + end);
        break;
      }
      default: {  // fold: exchange the own prefix for another's
        if (x == y) break;
        const int end = *rc::gen::inRange(0, static_cast<int>(std::min(mine.size(), theirs.size())) + 1);
        cells.remove(seq, 0, end);
        cells.share(other, seq, 0, end);
        std::copy_n(theirs.begin(), end, mine.begin());
      }
    }
    cells.check_invariants();
    RC_ASSERT(cells.used() == naive.used());
    for (std::size_t s = 0; s < n_seqs; ++s) {
      RC_ASSERT(cells.exclusive(SeqId{static_cast<int>(s)}) == naive.exclusive(s));
      RC_ASSERT(cells.length(SeqId{static_cast<int>(s)}) == static_cast<TokenPos>(naive.seqs[s].size()));
    }
  }
}

}  // namespace
}  // namespace coppice::kv
