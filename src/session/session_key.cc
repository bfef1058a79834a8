#include "session/session_key.h"

#include <optional>

#include "base/json.h"

namespace coppice::session {
namespace {

enum class Where {
  own,        // a body field of ours: a wrong type is the client's error
  header,     // a header, by its lower-case name
  body,       // a body field of some API; "a.b" is b in a
  body_json,  // a body field whose text is a JSON object; "a.b#c" is c in the object in b in a
  minted,     // ids of ours inside the messages
};

struct Rule {
  Where where;
  const char* field;
  const char* branch_header = nullptr;  // names a sub-agent inside the session
  const char* parent_header = nullptr;  // the session, or the sub-agent, that started this one
};

// In order of trust. Who sends what: Claude Code x-claude-code-*; Codex thread-id, session-id and, older, session_id
// and conversation_id; opencode and Kilo x-session-affinity and their own; then proxies and web front ends; then what
// the public APIs have for it. prompt_cache_key may be one for a parent and its children: it names a group.
constexpr Rule kRules[] = {
    {Where::own, "session_id"},
    {Where::header, "x-session-id", nullptr, "x-parent-session-id"},
    {Where::header, "x-claude-code-session-id", "x-claude-code-agent-id", "x-claude-code-parent-agent-id"},
    {Where::header, "thread-id"},
    {Where::header, "session-id"},
    {Where::header, "session_id"},
    {Where::header, "conversation_id"},
    {Where::header, "x-session-affinity", nullptr, "x-parent-session-id"},
    {Where::header, "x-opencode-session", nullptr, "x-parent-session-id"},
    {Where::header, "x-kilo-session", nullptr, "x-parent-session-id"},
    {Where::header, "agent-session-id"},
    {Where::header, "x-openwebui-chat-id"},
    {Where::header, "x-conversation-id"},
    {Where::header, "x-litellm-session-id"},
    {Where::header, "helicone-session-id"},
    {Where::header, "x-affinity"},
    {Where::body, "prompt_cache_key"},
    {Where::body, "promptCacheKey"},
    {Where::body, "metadata.session_id"},
    {Where::body_json, "metadata.user_id#session_id"},
    {Where::minted, "previous_response_id"},
    {Where::minted, "messages"},
};

std::string rule_name(const Rule& rule) {
  switch (rule.where) {
    case Where::own:
    case Where::body:
    case Where::body_json: return std::string("body.") + rule.field;
    case Where::header: return std::string("header.") + rule.field;
    case Where::minted: return std::string("minted.") + rule.field;
  }
  return {};
}

Result<std::string> own_field(const Json& body, const char* field, std::size_t bytes_max) {
  const auto it = body.find(field);
  if (it == body.end() || it->is_null()) return std::string{};
  if (!it->is_string()) return invalid("'" + std::string(field) + "' must be a string", field);
  const auto& text = it->get_ref<const std::string&>();
  if (text.size() > bytes_max) {
    return invalid("'" + std::string(field) + "' is longer than " + std::to_string(bytes_max) + " bytes", field);
  }
  return text;
}

// The string at a dotted path; empty if there is none.
std::string text_at(const Json& body, std::string_view path) {
  const Json* at = &body;
  while (true) {
    const std::size_t dot = path.find('.');
    if (!at->is_object()) return {};
    const auto it = at->find(std::string(path.substr(0, dot)));
    if (it == at->end()) return {};
    at = &*it;
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  return at->is_string() ? at->get<std::string>() : std::string{};
}

std::string text_in_json_at(const Json& body, std::string_view path) {
  const std::size_t hash = path.find('#');
  const Json inner = Json::parse(text_at(body, path.substr(0, hash)), nullptr, false);
  return inner.is_object() ? text_at(inner, path.substr(hash + 1)) : std::string{};
}

// The newest tool call in the messages that this server made: ids of older turns come along in every request, but a
// conversation may have been begun elsewhere.
std::string minted_in_messages(const Json& body, const MintedLookup& minted) {
  const auto messages = body.find("messages");
  if (messages == body.end() || !messages->is_array()) return {};
  for (auto message = messages->rbegin(); message != messages->rend(); ++message) {
    if (!message->is_object()) continue;
    const auto calls = message->find("tool_calls");
    if (calls == message->end() || !calls->is_array()) continue;
    for (const Json& call : *calls) {
      if (std::string session = minted(text_at(call, "id")); !session.empty()) return session;
    }
  }
  return {};
}

std::string look(const Rule& rule, const Json& body, const SessionSources& sources) {
  switch (rule.where) {
    case Where::own: return {};  // read before, with its errors
    case Where::header: return std::string(sources.header(rule.field));
    case Where::body: return text_at(body, rule.field);
    case Where::body_json: return text_in_json_at(body, rule.field);
    case Where::minted:
      if (!sources.minted) return {};
      return rule.field == std::string_view("messages") ? minted_in_messages(body, sources.minted)
                                                        : sources.minted(text_at(body, rule.field));
  }
  return {};
}

// A sub-agent's key is its session's with its own name behind it; without a named parent its parent is the session.
void add_branch(const Rule& rule, const SessionSources& sources, SessionKey& found) {
  const std::string session = found.key;
  const auto header = [&](const char* name) { return name == nullptr ? std::string_view{} : sources.header(name); };
  const std::string_view branch = header(rule.branch_header), parent = header(rule.parent_header);
  if (!branch.empty()) {
    found.key.append("/").append(branch);
    found.parent = parent.empty() ? session : session + "/" + std::string(parent);
  } else if (rule.branch_header == nullptr) {
    found.parent = parent;
  }
  if (found.key.size() > sources.bytes_max) found.key = session;
  if (found.parent.size() > sources.bytes_max || found.parent == found.key) found.parent.clear();
}

}  // namespace

Result<SessionKey> find_session_key(const Json& body, const SessionSources& sources) {
  auto own = own_field(body, "session_id", sources.bytes_max);
  if (!own) return std::unexpected(own.error());
  auto parent = own_field(body, "parent_session_id", sources.bytes_max);
  if (!parent) return std::unexpected(parent.error());

  SessionKey found;
  for (const Rule& rule : kRules) {
    if (rule.where != Where::own && !sources.infer) break;
    std::string key = rule.where == Where::own ? *own : look(rule, body, sources);
    if (key.empty() || key.size() > sources.bytes_max) continue;
    found = {.key = std::move(key), .rule = rule_name(rule), .parent = {}};
    if (rule.where == Where::header) add_branch(rule, sources, found);
    break;
  }
  if (!parent->empty()) found.parent = *std::move(parent);
  return found;
}

std::vector<std::string> session_rules() {
  std::vector<std::string> names;
  for (const Rule& rule : kRules) names.push_back(rule_name(rule));
  return names;
}

}  // namespace coppice::session
