#include "sched/session_keeper.h"

#include <algorithm>
#include <map>

#include "obs/log.h"
#include "tier/cache_reader.h"

namespace coppice::sched {
namespace {

// Values are digests and numbers: enough of them to see that they are not the same.
constexpr std::size_t kValueShown = 12;
constexpr std::size_t kOtherModelsShown = 4;

std::map<std::string_view, std::string_view> fields_of(std::string_view fingerprint) {
  std::map<std::string_view, std::string_view> fields;
  while (!fingerprint.empty()) {
    const std::string_view word = fingerprint.substr(0, fingerprint.find(' '));
    fingerprint.remove_prefix(std::min(fingerprint.size(), word.size() + 1));
    const std::size_t equals = word.find('=');
    fields[word.substr(0, equals)] = equals == std::string_view::npos ? std::string_view{} : word.substr(equals + 1);
  }
  return fields;
}

}  // namespace

std::string fingerprint_difference(std::string_view before, std::string_view now) {
  const auto old_fields = fields_of(before), new_fields = fields_of(now);
  std::map<std::string_view, std::pair<std::string_view, std::string_view>> both;
  for (const auto& [key, value] : old_fields) both[key].first = value;
  for (const auto& [key, value] : new_fields) both[key].second = value;
  const auto shown = [](std::string_view value, std::size_t length) {
    return value.empty() ? std::string("none") : std::string(value.substr(0, length));
  };
  std::string text;
  for (const auto& [key, values] : both) {
    if (values.first == values.second) continue;
    if (!text.empty()) text += ", ";
    const bool alike = values.first.substr(0, kValueShown) == values.second.substr(0, kValueShown);
    const std::size_t length = alike ? std::string_view::npos : kValueShown;
    text += std::string(key) + ": " + shown(values.first, length) + " -> " + shown(values.second, length);
  }
  return text;
}

SessionKeeper::SessionKeeper(const TierOptions& options, tier::BlockKind last, const Clock& clock)
    : tiers_(options.tiers), fingerprint_(options.fingerprint), last_(last), clock_(clock) {}

tier::BlockId SessionKeeper::root(NamespaceId ns) const { return root_of(fingerprint_, ns); }

void SessionKeeper::load(SessionTable& table) {
  if (tiers_ == nullptr || !tiers_->survives_restart()) return;
  std::vector<SessionRecord> ours, strangers;
  std::vector<std::string> unreadable;
  for (const auto& [key, text] : tiers_->records(kSessionRecords)) {
    auto record = read_session_record(key, text);
    if (!record) {
      unreadable.push_back(key);
    } else {
      (record->root == root(record->key.ns) ? ours : strangers).push_back(*std::move(record));
    }
  }
  for (const std::string& key : unreadable) tiers_->erase_record(kSessionRecords, key);
  std::ranges::sort(ours, std::ranges::greater(), &SessionRecord::last_use_us);
  for (SessionRecord& record : ours) {
    const kv::SessionKey key = record.key;
    if (!table.restore(session_of(std::move(record)))) forget(key);
  }
  if (table.size() > 0) obs::log_info("sessions of before", "sessions={} tokens={}", table.size(), table.tokens());
  log_strangers(strangers.size(), table.size());
  forget_oldest(std::move(strangers), table.limits().sessions_max);
}

SessionTable::Session SessionKeeper::session_of(SessionRecord record) const {
  Tokens tokens;
  tier::BlockId parent = record.root;
  std::size_t known = 0;
  for (const tier::BlockId& id : record.blocks) {
    const tier::Entry* block = tiers_->block(id);
    if (block == nullptr || block->parent_id != parent) break;
    tokens.insert(tokens.end(), block->tokens.begin(), block->tokens.end());
    parent = id;
    ++known;
  }
  if (known == record.blocks.size()) tokens.insert(tokens.end(), record.tail.begin(), record.tail.end());
  const auto length =
      static_cast<TokenPos>(record.blocks.size()) * tiers_->block_tokens() + static_cast<TokenPos>(record.tail.size());
  const std::uint64_t now_us = tiers_->wall_us();
  const std::uint64_t idle_us = now_us - std::min(now_us, record.last_use_us);
  return {.key = std::move(record.key),
          .last_prompt = std::make_shared<const Tokens>(std::move(tokens)),
          .prompt_tokens = length,
          .parent = std::move(record.parent),
          .latest = {},
          .requests = record.requests,
          .last_use = clock_.now() - Duration(idle_us)};
}

void SessionKeeper::forget_oldest(std::vector<SessionRecord> strangers, std::size_t count_max) {
  if (strangers.size() <= count_max) return;
  std::ranges::sort(strangers, std::ranges::greater(), &SessionRecord::last_use_us);
  for (std::size_t i = count_max; i < strangers.size(); ++i) {
    tiers_->erase_record(kSessionRecords, record_key(strangers[i].key, strangers[i].root));
  }
}

// Why what is in the folder is of no use now: for whoever changed a setting and wonders where the conversations are.
void SessionKeeper::log_strangers(std::size_t sessions, std::size_t known) const {
  const std::string own = tier::hex(root(NamespaceId{}));
  std::size_t shown = 0;
  for (const auto& [root, fingerprint] : tiers_->records(tier::kRootRecordKind)) {
    if (root == own || ++shown > kOtherModelsShown) continue;
    const std::string differs = fingerprint_difference(fingerprint, fingerprint_);
    if (known == 0) {
      obs::log_warn("cache made under another model or other settings",
                    "differs=\"{}\" reason=\"its KV and sessions are not used, and stay for when they fit again\"",
                    differs);
    } else {
      obs::log_info("cache made under another model or other settings too", "differs=\"{}\"", differs);
    }
  }
  if (sessions > 0) obs::log_info("sessions of other models or settings", "sessions={}", sessions);
}

void SessionKeeper::keep(const SessionTable::Session& session) {
  if (tiers_ == nullptr || !tiers_->survives_restart()) return;
  const auto age = std::max(clock_.now() - session.last_use, Duration{0});
  SessionRecord record{.key = session.key,
                       .root = root(session.key.ns),
                       .parent = session.parent,
                       .requests = session.requests,
                       .last_use_us = tiers_->wall_us() - static_cast<std::uint64_t>(age.count()),
                       .blocks = {},
                       .tail = {}};
  std::span<const Token> rest(*session.last_prompt);
  const auto n = static_cast<std::size_t>(tiers_->block_tokens());
  tier::BlockId parent = record.root;
  for (; rest.size() >= n; rest = rest.subspan(n)) {
    parent = tier::id_of(parent, rest.first(n));
    record.blocks.push_back(parent);
  }
  record.tail.assign(rest.begin(), rest.end());
  if (tiers_->put_record(kSessionRecords, record_key(session.key, record.root), to_text(record)) || refused_) return;
  refused_ = true;
  obs::log_warn("sessions will not outlive this process", "reason=\"the records of the cache folder are full\"");
}

void SessionKeeper::forget(const kv::SessionKey& key) {
  if (tiers_ != nullptr) tiers_->erase_record(kSessionRecords, record_key(key, root(key.ns)));
}

SessionKeeper::Stored SessionKeeper::stored(const SessionTable::Session& session) const {
  if (tiers_ == nullptr) return {};
  const tier::Found found = tiers_->find(root(session.key.ns), *session.last_prompt, last_);
  return {found.tokens, found.tokens_in_host};
}

}  // namespace coppice::sched
