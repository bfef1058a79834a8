#include "session/session_key.h"

#include "base/json.h"

namespace coppice::session {
namespace {

enum class Where { body, header };

struct Rule {
  Where where;
  const char* field;  // a body key, or a header's lower-case name
  const char* name;   // as reported in session_rule
};

// In order of trust. More clients are supported by adding lines.
constexpr Rule kRules[] = {
    {Where::body, "session_id", "body.session_id"},
    {Where::header, "x-session-id", "header.x-session-id"},
};

Result<std::string> read_body(const Json& body, const char* field, std::size_t bytes_max) {
  auto it = body.find(field);
  if (it == body.end() || it->is_null()) return std::string{};
  if (!it->is_string()) return invalid("'" + std::string(field) + "' must be a string", field);
  const auto& text = it->get_ref<const std::string&>();
  if (text.size() > bytes_max) {
    return invalid("'" + std::string(field) + "' is longer than " + std::to_string(bytes_max) + " bytes", field);
  }
  return text;
}

}  // namespace

Result<SessionKey> find_session_key(const Json& body, const HeaderLookup& header, std::size_t bytes_max) {
  SessionKey found;
  for (const Rule& rule : kRules) {
    std::string key;
    if (rule.where == Where::body) {
      auto value = read_body(body, rule.field, bytes_max);
      if (!value) return std::unexpected(value.error());
      key = *std::move(value);
    } else if (found.key.empty()) {
      std::string_view value = header(rule.field);
      if (value.size() <= bytes_max) key = value;
    }
    // Later body fields are still read, so that a wrong type is reported whatever the header says.
    if (found.key.empty() && !key.empty()) found = SessionKey{std::move(key), rule.name};
  }
  return found;
}

}  // namespace coppice::session
