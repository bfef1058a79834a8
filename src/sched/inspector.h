// What people can ask the scheduler about its KV, and the few things that they can change: sessions, pools, the prefix
// tree, and what would happen to a request (spec A12, A14). What people are shown is limited to one namespace.
//
// Threading: the engine thread, see Engine::inspect.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "kv/reuse.h"
#include "kv/slot_choice.h"
#include "kv/slot_map.h"
#include "sched/request.h"
#include "tier/tiers.h"

namespace coppice::sched {

// Where a sequence is: in a slot, kept as a pool, pinned by a cache mark, or parked (held, but no slot's).
struct SequencePlace {
  SeqId seq;
  std::optional<SlotId> slot;
  std::string pool;  // its name, "" if it is none
  bool running = false;
  bool pinned = false;
};

struct SessionInfo {
  std::string name, parent;            // parent: "" if none
  TokenPos prompt_tokens = 0;          // of its last prompt
  TokenPos held = 0;                   // of those, how many are in cells, whoever computed them
  TokenPos in_host = 0, on_disk = 0;   // of those, how many the host tier has, and how many more only the disk has
  std::optional<SequencePlace> place;  // who holds the most of them; none if nothing is held
  std::int64_t requests = 0;           // that this session has begun
  Duration idle{0};                    // since it last began one
};

// A session's last prompt, of whichever namespace.
struct RecentPrompt {
  kv::SessionKey session;
  std::shared_ptr<const Tokens> prompt;
};

struct PoolInfo {
  std::string name;
  TokenPos tokens = 0;
  TokenPos exclusive = 0;              // cells that only the pool holds
  std::int64_t uses = 0;               // requests that started from it
  Duration age{0}, idle{0};            // since it was made, since it was last used
  std::optional<Duration> expires_in;  // none: it stays until it is deleted
};

// The held sequence that agrees longest with a prompt, and how the two go on from there.
struct Nearest {
  std::string session;  // whose it is; "" if no session's
  SequencePlace place;
  TokenPos length = 0;              // tokens that it holds or will hold
  TokenPos common = 0;              // of those, how many the prompt begins with
  Tokens before;                    // the last few common tokens
  Tokens prompt_after, held_after;  // the next few on either side; empty where that side ends
  std::string before_text, prompt_text, held_text;
};

// What would happen to a request if it were admitted now.
struct Explanation {
  kv::SlotRule rule = kv::SlotRule::wait;
  std::optional<SlotId> slot;  // none: it would wait for one
  TokenPos prompt_tokens = 0, reused = 0, computed = 0;
  kv::Source source = kv::Source::none;
  TokenPos prepared = 0;              // of the reused, computed while nobody waited and not used yet (spec B25)
  std::optional<SequencePlace> from;  // where the reused tokens come from
  kv::MissReason reason = kv::MissReason::none;
  TokenPos diverged_at = -1;           // token index; -1: it does not
  std::string diverged_text;           // a short window of the prompt around it
  std::optional<RequestId> waits_for;  // a running request that is computing more of the prompt
  TokenPos waits_until = 0;            // up to this many tokens
  bool waits_for_cells = false;
  TokenPos cells_needed = 0;  // new cells, with one for the first generated token
  std::optional<Nearest> nearest;
};

// One run of tokens in the prefix tree, children below it.
struct TreeNode {
  TokenPos begin = 0, length = 0;   // positions
  std::string text;                 // how it begins
  std::vector<SequencePlace> ends;  // sequences that end in this run
  std::int32_t sequences = 0;       // sequences that go through it
  std::vector<TreeNode> children;
  std::int32_t hidden_children = 0;  // left out: too deep, or over the limit on nodes
};

class Inspector {
 public:
  virtual ~Inspector() = default;

  // REQUIRES: the request passed check().
  virtual Explanation explain(const Tokens& prompt, const Placement& placement) = 0;

  // At most `nodes_max` nodes and `depth_max` levels below the root (which has no tokens).
  virtual TreeNode tree(NamespaceId ns, std::int32_t depth_max, std::int32_t nodes_max) = 0;

  // Most recently used first, at most `count_max`.
  virtual std::vector<SessionInfo> sessions(NamespaceId ns, std::size_t count_max) = 0;
  virtual Result<SessionInfo> session(NamespaceId ns, const std::string& name) = 0;

  // Forgets the session, and frees the KV that only it holds. Returns the cells that became free.
  // Errors: not_found; conflict while it runs a request.
  virtual Result<TokenPos> forget_session(NamespaceId ns, const std::string& name) = 0;

  // Most recently used sessions first, as many as have `tokens_max` tokens together and `count_max` at most; those
  // whose prompts are not known to the end are left out.
  virtual std::vector<RecentPrompt> recent_prompts(std::size_t count_max, TokenPos tokens_max) = 0;

  virtual std::vector<PoolInfo> pools(NamespaceId ns) = 0;
  virtual Result<PoolInfo> pool(NamespaceId ns, const std::string& name) = 0;

  // Unpins and frees it; requests that share its cells keep them. Returns the cells that became free. Errors:
  // not_found.
  virtual Result<TokenPos> drop_pool(NamespaceId ns, const std::string& name) = 0;

  // Calls `done`, now or in a later step, once everything computed until now is on disk or has failed. Without a disk
  // there is nothing to wait for.
  virtual void flush_tiers(std::function<void(tier::FlushResult)> done) = 0;
  virtual tier::Stats tier_stats() const = 0;
};

}  // namespace coppice::sched
