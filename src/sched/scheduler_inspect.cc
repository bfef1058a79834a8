// Answers for people (sched/inspector.h): sessions, pools, the tree, and what would happen to a request.
#include <fmt/format.h>

#include <algorithm>

#include "sched/scheduler.h"

namespace coppice::sched {
namespace {

constexpr TokenPos kWindow = 12;      // tokens either side of a point where two prompts part
constexpr TokenPos kRunTextMax = 12;  // tokens that a run of the tree is shown by

Error no_session(const std::string& name) {
  return {ErrorKind::not_found, fmt::format("there is no session '{}'", name), "session"};
}
Error no_pool(const std::string& name) {
  return {ErrorKind::not_found, fmt::format("there is no pool '{}'", name), "pool"};
}

}  // namespace

Explanation Scheduler::explain(const Tokens& prompt, const Placement& placement) {
  unpin_expired();
  const Lookup lookup = look_up(prompt, placement);
  const kv::SlotChoice choice = place(lookup);
  AdmissionFacts facts = facts_of(lookup, choice);
  TokenPos in_host = 0;
  const TokenPos in_tiers = placement.cache_prompt ? tiering_.known(placement.ns, prompt, &in_host) : 0;
  add_tiers(facts, in_tiers);
  const Miss miss = explain_miss(facts, prompt);
  const auto length = static_cast<TokenPos>(prompt.size());
  Explanation e{.rule = choice.rule,
                .slot = choice.slot,
                .prompt_tokens = length,
                .reused = facts.known(),
                .computed = length - facts.known(),
                .source = source_of(facts.plan, std::max(0, std::min(in_host, facts.known()) - facts.plan.reused),
                                    std::max(0, facts.known() - std::max(in_host, facts.plan.reused))),
                .prepared = facts.plan.from ? prepared_of(*facts.plan.from, facts.plan.reused) : 0,
                .from = {},
                .reason = miss.reason,
                .diverged_at = miss.diverged_at,
                .diverged_text = miss.diverged_at >= 0 ? text_window(prompt, miss.diverged_at) : "",
                .waits_for = {},
                .waits_until = 0,
                .waits_for_cells = !cells_suffice(length, facts.plan),
                .cells_needed = length - facts.plan.reused + 1,
                .nearest = nearest(lookup)};
  if (e.prepared > 0) e.source = kv::Source::prepared;
  if (facts.plan.from) e.from = residency_.place(*facts.plan.from);
  if (const auto wait = who_computes_more(lookup, facts.known())) {
    e.waits_for = wait->leader;
    e.waits_until = wait->until;
  }
  return e;
}

// The sequence that goes along with the prompt longest; of equal ones a session's, then the longest.
std::optional<Nearest> Scheduler::nearest(const Lookup& lookup) const {
  std::optional<SeqId> best;
  std::tuple<TokenPos, bool, TokenPos> rank;
  for (std::int32_t i = 0; i < sequences().count(); ++i) {
    const SeqId seq{i};
    const TokenPos common = lookup.common[static_cast<std::size_t>(i)];
    const std::tuple its(common, sequences().notes(seq).session.has_value(), sequences().promised(seq));
    if (common == 0 || (best && its <= rank)) continue;
    best = seq;
    rank = its;
  }
  if (!best) return std::nullopt;
  const TokenPos common = std::get<0>(rank), length = sequences().promised(*best);
  Nearest n{.session = {}, .place = residency_.place(*best), .length = length, .common = common};
  if (const auto& session = sequences().notes(*best).session) n.session = session->name;
  const kv::PrefixTree& tree = sequences().tree();
  n.before = tree.tokens(*best, std::max(0, common - kWindow), common);
  n.held_after = tree.tokens(*best, common, std::min(length, common + kWindow));
  const auto from = lookup.prompt.begin() + common;
  n.prompt_after.assign(from, from + std::min<std::ptrdiff_t>(kWindow, lookup.prompt.end() - from));
  n.before_text = text_of(n.before);
  n.prompt_text = text_of(n.prompt_after);
  n.held_text = text_of(n.held_after);
  return n;
}

std::string Scheduler::text_of(const Tokens& tokens) const {
  std::string text;
  for (const Token token : tokens) text += tokenizer_.piece(token, true);
  return text;
}

TreeNode Scheduler::tree(NamespaceId ns, std::int32_t depth_max, std::int32_t nodes_max) {
  const kv::PrefixTree& tree = sequences().tree();
  std::int32_t nodes = 0;
  const std::function<void(TreeNode&, const std::vector<std::int32_t>&, std::int32_t)> fill =
      [&](TreeNode& parent, const std::vector<std::int32_t>& runs, std::int32_t depth) {
        for (const std::int32_t id : runs) {
          if (depth >= depth_max || nodes >= nodes_max) {
            ++parent.hidden_children;
            continue;
          }
          ++nodes;
          const kv::PrefixTree::Run run = tree.run(id);
          TreeNode& node = parent.children.emplace_back();
          node.begin = run.begin;
          node.length = static_cast<TokenPos>(run.tokens.size());
          node.text = text_of({run.tokens.begin(), run.tokens.begin() + std::min(node.length, kRunTextMax)});
          node.sequences = static_cast<std::int32_t>(run.through.count());
          for (const SeqId seq : run.ends) node.ends.push_back(residency_.place(seq));
          fill(node, run.children, depth + 1);
        }
      };
  TreeNode root;
  fill(root, tree.top_runs(ns), 0);
  return root;
}

SessionInfo Scheduler::describe(const SessionTable::Session& session) const {
  SessionInfo info{.name = session.key.name,
                   .parent = session.parent,
                   .prompt_tokens = session.prompt_tokens,
                   .held = 0,
                   .in_host = 0,
                   .on_disk = 0,
                   .place = {},
                   .requests = session.requests,
                   .idle = clock_.now() - session.last_use};
  const SessionKeeper::Stored stored = session_keeper_.stored(session);
  info.in_host = stored.in_host;
  info.on_disk = stored.tokens - stored.in_host;
  const auto all_held = sequences().held(sequences().tree().common(session.key.ns, *session.last_prompt));
  for (std::int32_t i = 0; i < sequences().count(); ++i) {
    const SeqId seq{i};
    const TokenPos held = all_held[static_cast<std::size_t>(i)];
    if (held < info.held || held == 0 || (held == info.held && session.latest != seq)) continue;
    info.held = held;
    info.place = residency_.place(seq);
  }
  return info;
}

std::vector<SessionInfo> Scheduler::sessions(NamespaceId ns, std::size_t count_max) {
  std::vector<SessionInfo> result;
  for (const SessionTable::Session* session : residency_.sessions().recent(ns, count_max)) {
    result.push_back(describe(*session));
  }
  return result;
}

std::vector<RecentPrompt> Scheduler::recent_prompts(std::size_t count_max, TokenPos tokens_max) {
  std::vector<RecentPrompt> result;
  TokenPos tokens = 0;
  for (const SessionTable::Session& session : residency_.sessions().recent()) {
    const TokenPos length = session.prompt_tokens;
    if (result.size() == count_max || tokens + length > tokens_max) break;
    if (static_cast<TokenPos>(session.last_prompt->size()) < length) continue;
    tokens += length;
    result.push_back({session.key, session.last_prompt});
  }
  return result;
}

Result<SessionInfo> Scheduler::session(NamespaceId ns, const std::string& name) {
  const SessionTable::Session* session = residency_.sessions().find({ns, name});
  if (session == nullptr) return std::unexpected(no_session(name));
  return describe(*session);
}

Result<TokenPos> Scheduler::forget_session(NamespaceId ns, const std::string& name) {
  const kv::SessionKey key{ns, name};
  give_up_background(key, Drop::moved_on);
  const bool runs =
      std::any_of(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.active && s.active->session() == key; });
  if (runs) return fail(ErrorKind::conflict, fmt::format("session '{}' is running a request", name), "session");
  if (residency_.sessions().find(key) == nullptr) return std::unexpected(no_session(name));
  const TokenPos before = sequences().cells().used();
  for (std::int32_t i = 0; i < sequences().count(); ++i) {
    const SeqId seq{i};
    if (sequences().notes(seq).session == key && !sequences().leases().held(seq)) residency_.drop(seq);
  }
  residency_.sessions().forget(key);
  slot_map_.forget(key);
  retry_ = true;
  publish_gauges();
  return before - sequences().cells().used();
}

PoolInfo Scheduler::describe(const Pool& pool) const {
  PoolInfo info{.name = pool.name,
                .tokens = sequences().length(pool.seq()),
                .exclusive = sequences().cells().exclusive(pool.seq()),
                .uses = pool.uses,
                .age = clock_.now() - pool.made,
                .idle = clock_.now() - pool.last_use,
                .expires_in = {}};
  if (pool.expires) info.expires_in = *pool.expires - clock_.now();
  return info;
}

std::vector<PoolInfo> Scheduler::pools(NamespaceId ns) {
  unpin_expired();
  std::vector<PoolInfo> result;
  for (const Pool* pool : residency_.pools().all()) {
    if (pool->ns == ns) result.push_back(describe(*pool));
  }
  return result;
}

Result<PoolInfo> Scheduler::pool(NamespaceId ns, const std::string& name) {
  unpin_expired();
  const Pool* pool = residency_.pools().find(ns, name);
  if (pool == nullptr) return std::unexpected(no_pool(name));
  return describe(*pool);
}

Result<TokenPos> Scheduler::drop_pool(NamespaceId ns, const std::string& name) {
  unpin_expired();
  const Pool* pool = residency_.pools().find(ns, name);
  if (pool == nullptr) return std::unexpected(no_pool(name));
  const TokenPos before = sequences().cells().used();
  const SeqId seq = pool->seq();
  residency_.unpin(ns, name);
  tiering_.forget_pool(ns, name);
  if (residency_.is_parked(seq)) residency_.drop(seq);
  retry_ = true;
  publish_gauges();
  return before - sequences().cells().used();
}

}  // namespace coppice::sched
