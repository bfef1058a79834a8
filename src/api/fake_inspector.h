// A stand-in for the engine's inspector, for this layer's tests: answers what the test put in, and notes what it was
// asked.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sched/inspector.h"

namespace coppice::api {

class FakeInspector final : public sched::Inspector {
 public:
  sched::Explanation explain(const Tokens& prompt, const sched::Placement& placement) override {
    asked.emplace_back(prompt, placement);
    return explanation;
  }
  sched::TreeNode tree(NamespaceId ns, std::int32_t depth, std::int32_t nodes) override {
    depth_max = depth;
    nodes_max = nodes;
    return trees[ns];
  }
  std::vector<sched::SessionInfo> sessions(NamespaceId ns, std::size_t count_max) override {
    std::vector<sched::SessionInfo> out;
    for (const auto& [name, info] : sessions_of[ns]) {
      if (out.size() < count_max) out.push_back(info);
    }
    return out;
  }
  Result<sched::SessionInfo> session(NamespaceId ns, const std::string& name) override {
    return find(sessions_of[ns], name);
  }
  Result<TokenPos> forget_session(NamespaceId ns, const std::string& name) override {
    if (const auto found = find(sessions_of[ns], name); found && found->place && found->place->running) {
      return fail(ErrorKind::conflict, "the session runs a request");
    }
    return remove(sessions_of[ns], name);
  }
  std::vector<sched::RecentPrompt> recent_prompts(std::size_t, TokenPos) override { return {}; }
  std::vector<sched::PoolInfo> pools(NamespaceId ns) override {
    std::vector<sched::PoolInfo> out;
    for (const auto& [name, info] : pools_of[ns]) out.push_back(info);
    return out;
  }
  Result<sched::PoolInfo> pool(NamespaceId ns, const std::string& name) override { return find(pools_of[ns], name); }
  Result<TokenPos> drop_pool(NamespaceId ns, const std::string& name) override { return remove(pools_of[ns], name); }

  void flush_tiers(std::function<void(tier::FlushResult)> done) override { flushes.push_back(std::move(done)); }
  tier::Stats tier_stats() const override { return tiers; }

  std::vector<std::function<void(tier::FlushResult)>> flushes;
  tier::Stats tiers;
  template <class Info>
  using ByName = std::map<std::string, Info>;
  std::map<NamespaceId, ByName<sched::SessionInfo>> sessions_of;
  std::map<NamespaceId, ByName<sched::PoolInfo>> pools_of;
  std::map<NamespaceId, sched::TreeNode> trees;
  sched::Explanation explanation;
  std::vector<std::pair<Tokens, sched::Placement>> asked;  // by explain()
  std::int32_t depth_max = 0, nodes_max = 0;               // of the last tree()

  static constexpr TokenPos kFreed = 7;  // cells, by every deletion

 private:
  template <class Info>
  static Result<Info> find(const ByName<Info>& all, const std::string& name) {
    const auto found = all.find(name);
    if (found == all.end()) return fail(ErrorKind::not_found, "there is no '" + name + "'");
    return found->second;
  }
  template <class Info>
  static Result<TokenPos> remove(ByName<Info>& all, const std::string& name) {
    if (all.erase(name) == 0) return fail(ErrorKind::not_found, "there is no '" + name + "'");
    return kFreed;
  }
};

}  // namespace coppice::api
