#include "kv/lease.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace coppice::kv {
namespace {

TEST(Lease, IsGivenBackOnEveryWayOut) {
  LeaseBook book(2);
  const auto early_return = [&](bool early) {
    const Lease lease = book.take(SeqId{1});
    if (early) return;
    EXPECT_TRUE(book.held(SeqId{1}));
  };
  early_return(true);
  early_return(false);
  try {
    const Lease lease = book.take(SeqId{1});
    throw 1;
  } catch (int) {
  }
  EXPECT_FALSE(book.held(SeqId{1}));
  EXPECT_EQ(book.total(), 0);
}

TEST(Lease, MovesWithoutCountingTwice) {
  LeaseBook book(2);
  Lease first = book.take(SeqId{0});
  Lease second = std::move(first);
  EXPECT_EQ(book.count(SeqId{0}), 1);
  second = book.take(SeqId{1});  // the old right is given back
  EXPECT_FALSE(book.held(SeqId{0}));
  EXPECT_TRUE(book.held(SeqId{1}));
}

RC_GTEST_PROP(Lease, BookAgreesWithTheListOfLivingLeases, ()) {
  constexpr int n_seqs = 4;
  LeaseBook book(n_seqs);
  std::vector<Lease> living;
  const int n_steps = *rc::gen::inRange(0, 60);
  for (int step = 0; step < n_steps; ++step) {
    const auto pick = [&] { return static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(living.size()))); };
    switch (living.empty() ? 0 : *rc::gen::inRange(0, 4)) {
      case 0: living.push_back(book.take(SeqId{*rc::gen::inRange(0, n_seqs)})); break;
      case 1: living.erase(living.begin() + static_cast<std::ptrdiff_t>(pick())); break;
      case 2: living[pick()].release(); break;
      case 3: living[pick()] = std::move(living[pick()]); break;
    }
    std::vector<std::int32_t> counts(n_seqs, 0);
    for (const Lease& lease : living) {
      if (lease) ++counts[static_cast<std::size_t>(lease.seq().value)];
    }
    for (int i = 0; i < n_seqs; ++i) RC_ASSERT(book.count(SeqId{i}) == counts[static_cast<std::size_t>(i)]);
  }
}

}  // namespace
}  // namespace coppice::kv
