#include "simulate/policies.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "simulate/coppice_server.h"
#include "simulate/llama_server.h"

namespace coppice::simulate {
namespace {

constexpr int kAll = 1 << 30;  // all candidates are looked at

class LruCells final : public kv::EvictionPolicy {
 public:
  double worth(const kv::Evictable& s, kv::Shortage) const override { return 1 / (1 + to_s(s.idle)); }
};

class LruHost final : public tier::BlockEvictionPolicy {
 public:
  double worth(const tier::Candidate& b) const override { return 1 / (1 + to_s(b.age)); }
};

// The end of the conversation that was used last goes first.
class NewestHost final : public tier::BlockEvictionPolicy {
 public:
  double worth(const tier::Candidate& b) const override { return to_s(b.age); }
  int candidates_max() const override { return kAll; }
};

// Blocks that nobody has come back to go first, the oldest of them, as in the queues of S3-FIFO and 2Q; then the
// longest unused.
class ProbationHost final : public tier::BlockEvictionPolicy {
 public:
  double worth(const tier::Candidate& b) const override { return (b.uses > 1 ? 1 : 0) + 1 / (1 + to_s(b.age)); }
  int candidates_max() const override { return kAll; }
};

// Any one. The draw is made of what the policy is told, so that it is the same each time.
class RandomHost final : public tier::BlockEvictionPolicy {
 public:
  double worth(const tier::Candidate& b) const override {
    const auto age = static_cast<std::uint64_t>(b.age.count());
    return static_cast<double>(bench::mix(age, static_cast<std::uint64_t>(b.end), b.bytes) >> 11U);
  }
  int candidates_max() const override { return kAll; }
};

// How soon a block is likely to be asked for again by how often it was, and by how long ago that is: what has been idle
// for longer than the usual pause is likely over.
class LeastFrequentHost final : public tier::BlockEvictionPolicy {
 public:
  double worth(const tier::Candidate& b) const override { return (1.0 + b.uses) / (60 + to_s(b.age)); }
  int candidates_max() const override { return kAll; }
};

// The usual one, of all candidates rather than of the oldest.
class CostOfAllHost final : public tier::BlockEvictionPolicy {
 public:
  double worth(const tier::Candidate& b) const override { return usual_.worth(b); }
  int candidates_max() const override { return kAll; }

 private:
  tier::RecomputeOrReadPolicy usual_;
};

struct Entry {
  Named named;
  std::shared_ptr<const kv::EvictionPolicy> cells;
  std::shared_ptr<const tier::BlockEvictionPolicy> host;
  std::optional<Cells> llama_server = {};
  std::optional<std::int32_t> overtake_limit = {};
};

template <class T>
std::shared_ptr<const T> make() {
  return std::make_shared<const T>();
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all{
      {{"coppice", "the server as it is"}, nullptr, nullptr},
      {{"lru", "the same, with the longest unused given up first, on the device and in host memory"},
       make<LruCells>(),
       make<LruHost>()},
      {.named = {"arrival", "as coppice, requests run in order of arrival"},
       .cells = {},
       .host = {},
       .overtake_limit = 0},
      {.named = {"shortest", "as coppice, the fewest tokens to compute go first, however often others are overtaken"},
       .cells = {},
       .host = {},
       .overtake_limit = std::numeric_limits<std::int32_t>::max()},
      {{"llama-server", "v0.4.0 as it starts by itself: 4 slots, unified cells"}, nullptr, nullptr, Cells::unified},
      {{"llama-server-np", "v0.4.0 with -np: the slots share the cells out"}, nullptr, nullptr, Cells::split},
      {{"host-lru", "as coppice, host memory gives up the longest unused"}, nullptr, make<LruHost>()},
      {{"host-newest", "as coppice, host memory gives up the end of what was used last"}, nullptr, make<NewestHost>()},
      {{"host-probation", "as coppice, host memory gives up what nobody came back to, then the longest unused"},
       nullptr,
       make<ProbationHost>()},
      {{"host-random", "as coppice, host memory gives up any end"}, nullptr, make<RandomHost>()},
      {{"host-frequency", "as coppice, host memory gives up by uses over age"}, nullptr, make<LeastFrequentHost>()},
      {{"host-cost-all", "as coppice, host memory looks at all ends, not at the 32 oldest"},
       nullptr,
       make<CostOfAllHost>()},
  };
  return all;
}

}  // namespace

std::vector<Named> policy_names() {
  std::vector<Named> names;
  for (const Entry& e : entries()) names.push_back(e.named);
  return names;
}

bench::Result<MakeServer> make_policy(std::string_view name, const Room& room, const Costs& costs) {
  const auto& all = entries();
  const auto it = std::ranges::find_if(all, [&](const Entry& e) { return e.named.name == name; });
  if (it == all.end()) return std::unexpected("unknown policy: " + std::string(name));
  if (it->llama_server) {
    return [room, cells = *it->llama_server, &costs](ManualClock& clock, Listener listener) {
      return make_llama_server(room, cells, costs, clock, std::move(listener));
    };
  }
  return [room, policies = Policies{it->cells, it->host, it->overtake_limit}, &costs](ManualClock& clock,
                                                                                      Listener listener) {
    return make_coppice(room, policies, costs, clock, std::move(listener));
  };
}

}  // namespace coppice::simulate
