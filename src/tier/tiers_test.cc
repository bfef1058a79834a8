// The tiers without a disk: what is found, what fits, what goes first.
#include "tier/tiers.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "kv/prefix.h"
#include "tier/tiers_test_support.h"

namespace coppice::tier {
namespace {

using namespace std::chrono_literals;

const BlockId kRoot = root_of("model", "");

struct HostOnly : testing::Test {
  Tiers& open(std::uint64_t host_bytes_max) {
    Options options;
    options.host_bytes_max = host_bytes_max;
    options.block_tokens = 4;
    tiers = *Tiers::open(options, clock, metrics);
    return *tiers;
  }
  void put_all(const std::vector<Block>& chain) {
    for (const Block& block : chain) ASSERT_TRUE(tiers->put(block, false));
    tiers->check_invariants();
  }
  ManualClock clock;
  obs::Metrics metrics;
  std::unique_ptr<Tiers> tiers;
};

TEST_F(HostOnly, B20_FindsTheLongestChainAndUsesTheLastBlockInPart) {
  open(1000);
  const auto chain = chain_of(kRoot, numbers(1, 10), 4, 10);
  put_all(chain);
  Tokens prompt = numbers(1, 7);
  prompt.push_back(99);
  const Found found = tiers->find(kRoot, prompt);
  EXPECT_EQ(found.blocks, (std::vector{chain[0].id, chain[1].id}));
  EXPECT_EQ(found.tokens, 7);
  EXPECT_EQ(found.last_usable, 3);
  EXPECT_EQ(found.tokens_in_host, 7);
  EXPECT_EQ(tiers->find(kRoot, numbers(1, 10)).tokens, 10);  // a short block ends a turn exactly
  EXPECT_EQ(tiers->find(kRoot, numbers(1, 30)).tokens, 10);
  EXPECT_EQ(tiers->find(kRoot, numbers(2, 3)).tokens, 0);
  EXPECT_EQ(tiers->find(root_of("model", "another"), numbers(1, 10)).tokens, 0);  // B24
  EXPECT_EQ(tiers->find(kRoot, {}).tokens, 0);
}

// Worth nothing but what was put last.
struct NewestGoes final : BlockEvictionPolicy {
  double worth(const Candidate& block) const override { return to_s(block.age); }
  int candidates_max() const override { return 1000; }
};

TEST_F(HostOnly, B19_WhatGoesFirstIsUpToThePolicy) {
  tiers = *Tiers::open({.host_bytes_max = 400,
                        .disk = {},
                        .block_tokens = 4,
                        .eviction = std::make_shared<const NewestGoes>(),
                        .wake = {}},
                       clock, metrics);
  std::vector<Block> last;
  for (int i = 0; i < 41; ++i) {  // each after the one before; room for 40
    clock.advance(1s);
    last = chain_of(kRoot, numbers(100 * i, 2), 4, 10);
    put_all(last);
  }
  EXPECT_EQ(tiers->find(kRoot, numbers(100 * 39, 2)).tokens, 0);
  EXPECT_EQ(tiers->find(kRoot, numbers(100 * 40, 2)).tokens, 2);
  EXPECT_EQ(tiers->find(kRoot, numbers(0, 2)).tokens, 2);
}

TEST_F(HostOnly, B21_AChainEndsInTheLastCheckpointOnItsWay) {
  open(1000);
  const auto chain = chain_of(kRoot, numbers(1, 8), 4, 10);
  put_all(chain);
  const auto found = [&](const Tokens& prompt) { return tiers->find(kRoot, prompt, BlockKind::checkpoint); };
  EXPECT_EQ(found(numbers(1, 9)).tokens, 0);  // cells alone cannot be gone on from
  put_all({checkpoint_of(kRoot, 0, {1, 2}, 10), checkpoint_of(kRoot, 0, {1, 2, 3, 4}, 10),
           checkpoint_of(chain[0].id, 4, {5}, 10), checkpoint_of(chain[1].id, 8, {99}, 10)});
  EXPECT_EQ(tiers->stats().host.blocks, 6U);
  const Found longest = found(numbers(1, 9));
  EXPECT_EQ(longest.tokens, 5);
  EXPECT_EQ(longest.last_usable, 1);
  EXPECT_EQ(longest.blocks, (std::vector{chain[0].id, id_of(chain[0].id, Tokens{5}, BlockKind::checkpoint)}));
  EXPECT_EQ(found({1, 2, 3, 4, 9}).tokens, 4);
  EXPECT_EQ(found({1, 2, 3, 9}).tokens, 2);
  EXPECT_EQ(found({1}).tokens, 0);
  EXPECT_EQ(found({1, 2, 3, 4, 5, 6, 7, 8, 99}).tokens, 9);
}

TEST_F(HostOnly, B21_CheckpointsAreThinnedOutBackwards) {
  open(10000);
  const Tokens prompt = numbers(1, 41);
  const auto chain = chain_of(kRoot, numbers(1, 40), 4, 10);
  put_all(chain);
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {  // at 5, 9, .. 37, and at 40
    put_all({checkpoint_of(chain[i].id, chain[i + 1].begin, {chain[i + 1].tokens[0]}, 10)});
  }
  put_all({checkpoint_of(chain[8].id, 36, chain[9].tokens, 10)});
  const auto is_there = [&](TokenPos end) {
    const auto n = static_cast<std::size_t>(end);
    return tiers->find(kRoot, std::span(prompt).first(n), BlockKind::checkpoint).tokens == end;
  };
  for (int use = 0; use < 2; ++use) {  // as two conversations would that begin with it
    tiers->lease(tiers->find(kRoot, std::span(prompt).first(25), BlockKind::checkpoint).blocks);
  }
  EXPECT_EQ(tiers->thin_checkpoints(kRoot, prompt), 5U);
  std::vector<TokenPos> left;
  for (TokenPos end = 1; end <= 40; ++end) {
    if (is_there(end)) left.push_back(end);
  }
  EXPECT_EQ(left, (std::vector<TokenPos>{9, 25, 33, 37, 40}));
  tiers->check_invariants();
  EXPECT_EQ(tiers->thin_checkpoints(kRoot, prompt), 0U);
}

TEST_F(HostOnly, B20_NothingIsStoredTwice) {
  open(1000);
  put_all({block_of(kRoot, 0, {1, 2}, 10)});
  put_all({block_of(kRoot, 0, {1, 2, 3}, 10)});  // the turn's end has moved on: the shorter block goes
  EXPECT_EQ(tiers->stats().host.blocks, 1U);
  put_all({block_of(kRoot, 0, {1, 2}, 10)});  // and is not stored beside the longer one
  EXPECT_EQ(tiers->stats().host.blocks, 1U);
  put_all({block_of(kRoot, 0, {1, 2, 3}, 10)});
  EXPECT_EQ(tiers->stats().host.bytes, 10U);
  EXPECT_EQ(tiers->find(kRoot, Tokens{1, 2, 3}).tokens, 3);
}

TEST_F(HostOnly, PutRefusesWhatHasNoPlace) {
  open(1000);
  const auto chain = chain_of(kRoot, numbers(1, 10), 4, 10);
  EXPECT_FALSE(tiers->put(chain[1], false));  // its parent is not there
  put_all(chain);
  EXPECT_FALSE(tiers->put(block_of(chain[2].id, 10, {1}, 10), false));  // nothing goes on from a short one
  EXPECT_FALSE(tiers->put(block_of(chain[0].id, 3, {1}, 10), false));   // nor where its parent does not end
  EXPECT_EQ(tiers->stats().host.blocks, 3U);
}

TEST_F(HostOnly, B20_TheBudgetHoldsAndTheOldestEndGoesFirst) {
  open(60);
  const auto old = chain_of(kRoot, numbers(1, 12), 4, 10);
  put_all(old);
  clock.advance(600s);
  const auto young = chain_of(kRoot, numbers(100, 12), 4, 10);
  put_all(young);
  EXPECT_EQ(tiers->stats().host.bytes, 60U);
  put_all({block_of(young.back().id, 12, {1}, 10)});
  EXPECT_EQ(tiers->stats().host.bytes, 60U);
  EXPECT_FALSE(tiers->contains(old[2].id));  // the end of the older conversation, not its beginning
  EXPECT_TRUE(tiers->contains(old[1].id));
  EXPECT_EQ(tiers->stats().host.evictions, 1U);
}

TEST_F(HostOnly, WhatWasUsedStaysLonger) {
  open(20);
  const auto once = block_of(kRoot, 0, {1}, 10), often = block_of(kRoot, 0, {2}, 10);
  put_all({often, once});
  (void)tiers->lease(std::vector{often.id});
  put_all({block_of(kRoot, 0, {3}, 10)});
  EXPECT_TRUE(tiers->contains(often.id));
  EXPECT_FALSE(tiers->contains(once.id));
}

TEST_F(HostOnly, LeasedBlocksStayWithAllThatTheyGoOnFrom) {
  open(30);
  const auto chain = chain_of(kRoot, numbers(1, 12), 4, 10);
  put_all(chain);
  Lease lease = tiers->lease(std::vector{chain[1].id});
  clock.advance(600s);
  EXPECT_TRUE(tiers->put(block_of(kRoot, 0, {50}, 10), false));   // the third block makes room
  EXPECT_FALSE(tiers->put(block_of(kRoot, 0, {51}, 20), false));  // there are only 10 bytes that nobody needs
  EXPECT_EQ(tiers->stats().host.blocks, 3U);                      // and the attempt costs nothing
  EXPECT_EQ(tiers->stats().refused, 1U);
  Lease moved = std::move(lease);
  lease.release();
  EXPECT_FALSE(tiers->put(block_of(kRoot, 0, {51}, 20), false));
  moved = Lease();
  EXPECT_TRUE(tiers->put(block_of(kRoot, 0, {51}, 20), false));
  tiers->check_invariants();
}

TEST_F(HostOnly, APutDoesNotEvictWhatItGoesOnFrom) {
  open(20);
  const auto chain = chain_of(kRoot, numbers(1, 8), 4, 20);
  put_all({chain[0]});
  EXPECT_FALSE(tiers->put(chain[1], false));
  EXPECT_TRUE(tiers->contains(chain[0].id));
}

TEST_F(HostOnly, B20_WhatCellsHaveTooGivesWayFirstFromItsBeginning) {
  open(40);
  const auto chain = chain_of(kRoot, numbers(1, 12), 4, 10), other = chain_of(kRoot, numbers(100, 8), 4, 10);
  put_all(other);
  clock.advance(600s);
  CellsForTest sequence;
  sequence.grow(*tiers, chain);
  put_all({chain[0], chain[1]});
  put_all({chain[2]});  // at the cost of the first, which others go on from: the cells have it
  EXPECT_FALSE(tiers->contains(chain[0].id));
  EXPECT_TRUE(tiers->contains(chain[1].id));
  EXPECT_TRUE(tiers->contains(other[1].id));
  EXPECT_EQ(tiers->stats().host.evictions, 0U);
  const Found found = tiers->find(kRoot, numbers(1, 12));
  EXPECT_EQ(found.tokens, 12);
  EXPECT_EQ(found.tokens_in_host, 12);
}

TEST_F(HostOnly, B20_ABlockInCellsIsSavedWithoutWhatItGoesOnFrom) {
  open(10);
  const auto chain = chain_of(kRoot, numbers(1, 12), 4, 10);
  EXPECT_FALSE(tiers->put(chain[2], false));  // nobody has what it goes on from
  CellsForTest sequence;
  sequence.grow(*tiers, chain);
  put_all({chain[2]});
  sequence.shrink(*tiers, 2);  // the end leaves the cells, the beginning stays
  tiers->check_invariants();
  EXPECT_EQ(tiers->find(kRoot, numbers(1, 12)).tokens, 12);
  sequence.shrink(*tiers, 1);  // one that was not saved is lost, and what goes on from it is of no use
  tiers->check_invariants();
  EXPECT_EQ(tiers->find(kRoot, numbers(1, 12)).tokens, 4);
  EXPECT_EQ(tiers->stats().host.blocks, 0U);
}

TEST_F(HostOnly, B20_BlocksOfSeveralSequencesLeaveWithTheLast) {
  open(10);
  const auto chain = chain_of(kRoot, numbers(1, 8), 4, 10);
  CellsForTest one, two;
  one.grow(*tiers, chain);
  two.grow(*tiers, {chain[0]});
  one.shrink(*tiers, 0);
  EXPECT_EQ(tiers->find(kRoot, numbers(1, 8)).tokens, 4);
  two.shrink(*tiers, 0);
  EXPECT_EQ(tiers->find(kRoot, numbers(1, 8)).tokens, 0);
  tiers->check_invariants();
}

TEST_F(HostOnly, B20_APutAtTheCostOfNoneTakesFreeBytesOnly) {
  open(25);
  const auto chain = chain_of(kRoot, numbers(1, 12), 4, 10);
  EXPECT_TRUE(tiers->put(chain[0], false, Tiers::Room::as_is));
  EXPECT_TRUE(tiers->put(chain[1], false, Tiers::Room::as_is));
  EXPECT_FALSE(tiers->has_room());
  EXPECT_FALSE(tiers->put(chain[2], false, Tiers::Room::as_is));
  EXPECT_FALSE(tiers->put(block_of(kRoot, 0, {50}, 10), false, Tiers::Room::as_is));
  EXPECT_EQ(tiers->stats().host.blocks, 2U);
  EXPECT_EQ(tiers->stats().refused, 0U);
}

TEST_F(HostOnly, AQuarantinedBlockTakesItsDescendantsAndOutlivesNoLease) {
  open(1000);
  const auto chain = chain_of(kRoot, numbers(1, 12), 4, 10);
  put_all(chain);
  {
    const Lease lease = tiers->lease(std::vector{chain[0].id, chain[1].id, chain[2].id});
    tiers->quarantine(chain[1].id);
    EXPECT_EQ(tiers->ready(lease), Ready::lost);
    EXPECT_EQ(tiers->find(kRoot, numbers(1, 12)).tokens, 4);
    put_all({chain[1]});  // computed again: another stay, which the old lease does not know
  }
  tiers->check_invariants();
  EXPECT_EQ(tiers->stats().quarantined, 1U);
  EXPECT_EQ(tiers->stats().host.blocks, 2U);
}

TEST_F(HostOnly, WithoutADiskAFlushIsDoneAndRecordsAreKeptInMemory) {
  open(1000);
  put_all({block_of(kRoot, 0, {1}, 10)});
  EXPECT_EQ(tiers->flush_result(tiers->flush_begin())->blocks, 0U);
  EXPECT_TRUE(tiers->put_record("session", "a", "{}"));
  EXPECT_EQ(tiers->records("session").at("a"), "{}");
  tiers->erase_record("session", "a");
  EXPECT_TRUE(tiers->records("session").empty());
  EXPECT_EQ(tiers->secret().size(), 32U);
}

TEST_F(HostOnly, RecordsHaveALimit) {
  open(0);
  const std::string half(Tiers::kRecordBytesMax / 2, 'x');
  EXPECT_TRUE(tiers->put_record("k", "a", half));
  EXPECT_FALSE(tiers->put_record("k", "b", half));
  EXPECT_TRUE(tiers->put_record("k", "a", "small"));
  EXPECT_TRUE(tiers->put_record("k", "b", half));
  EXPECT_FALSE(tiers->put(block_of(kRoot, 0, {1}, 10), false));  // a host tier of no bytes is turned off
}

TEST_F(HostOnly, MetricsFollow) {
  open(20);
  put_all({block_of(kRoot, 0, {1}, 10), block_of(kRoot, 0, {2}, 10), block_of(kRoot, 0, {3}, 10)});
  const std::string text = metrics.text();
  EXPECT_NE(text.find("coppice_tier_bytes{tier=\"host\"} 20\n"), std::string::npos);
  EXPECT_NE(text.find("coppice_tier_bytes_limit{tier=\"host\"} 20\n"), std::string::npos);
  EXPECT_NE(text.find("coppice_tier_evictions_total{tier=\"host\"} 1\n"), std::string::npos);
}

// Against a naive model: a map of chains. Whatever happens, what is found is what is known, within the budget.
RC_GTEST_PROP(TiersModel, B20_FindAgreesWithComparingEverything, ()) {
  ManualClock clock;
  obs::Metrics metrics;
  Options options;
  options.host_bytes_max = static_cast<std::uint64_t>(*rc::gen::inRange(0, 120));
  options.block_tokens = *rc::gen::inRange(1, 5);
  const auto last = *rc::gen::arbitrary<bool>() ? BlockKind::cells : BlockKind::checkpoint;
  const auto tiers = *Tiers::open(options, clock, metrics);
  std::map<BlockId, Tokens> known;  // every block ever put: all tokens up to its end
  std::vector<Lease> leases;
  std::vector<CellsForTest> sequences(2);
  const bool with_cells = *rc::gen::arbitrary<bool>();
  const auto prompt_of = [] {
    return *rc::gen::container<Tokens>(static_cast<std::size_t>(*rc::gen::inRange(1, 12)), rc::gen::inRange(0, 3));
  };
  const int n_steps = *rc::gen::inRange(0, 50);
  for (int step = 0; step < n_steps; ++step) {
    clock.advance(Duration(*rc::gen::inRange(0, 1000000)));
    const Tokens prompt = prompt_of();
    TokenPos best = 0;  // by comparing with all that is held
    for (const auto& [id, tokens] : known) {
      if (tiers->block(id) == nullptr) continue;
      const auto common = kv::common_prefix(tokens, prompt);
      const bool whole = kind_of(id) == BlockKind::checkpoint && static_cast<std::size_t>(common) == tokens.size();
      if (last == BlockKind::cells || whole) best = std::max(best, common);
    }
    const Found found = tiers->find(kRoot, prompt, last);
    RC_ASSERT(found.tokens == best);
    RC_ASSERT(found.tokens_in_host == found.tokens);
    if (*rc::gen::inRange(0, 4) == 0) leases.push_back(tiers->lease(found.blocks));
    if (!leases.empty() && *rc::gen::inRange(0, 4) == 0) leases.erase(leases.begin());
    for (const Lease& lease : leases) RC_ASSERT(with_cells || tiers->ready(lease) == Ready::yes);
    if (*rc::gen::inRange(0, 10) == 0 && !found.blocks.empty() && leases.empty()) {
      tiers->quarantine(found.blocks.back());
      RC_ASSERT(!tiers->contains(found.blocks.back()));
    }
    const auto n_bytes = static_cast<std::size_t>(*rc::gen::inRange(0, 30));
    auto chain = last == BlockKind::cells ? chain_of(kRoot, prompt, options.block_tokens, n_bytes)
                                          : checkpoint_chain_of(kRoot, prompt, options.block_tokens, n_bytes);
    if (with_cells) {
      CellsForTest& sequence = sequences[static_cast<std::size_t>(*rc::gen::inRange(0, 2))];
      sequence.shrink(*tiers, static_cast<std::size_t>(*rc::gen::inRange(0, 2)) * sequence.size() / 2);
      if (sequence.size() == 0) sequence.grow(*tiers, chain);
      for (const Block& block : chain) {
        const auto end = static_cast<std::ptrdiff_t>(block.begin) + static_cast<std::ptrdiff_t>(block.tokens.size());
        if (tiers->block(block.id) != nullptr) known[block.id] = Tokens(prompt.begin(), prompt.begin() + end);
      }
      tiers->check_invariants();
    }
    for (Block& block : chain) {
      const auto end = static_cast<std::ptrdiff_t>(block.begin) + static_cast<std::ptrdiff_t>(block.tokens.size());
      const BlockId id = block.id;
      const std::size_t before = tiers->stats().host.blocks;
      if (!tiers->put(std::move(block), false)) {
        RC_ASSERT(tiers->stats().host.blocks == before);
        break;
      }
      known[id] = Tokens(prompt.begin(), prompt.begin() + end);
    }
    tiers->check_invariants();
    RC_ASSERT(tiers->stats().host.bytes <= options.host_bytes_max);
  }
}

}  // namespace
}  // namespace coppice::tier
