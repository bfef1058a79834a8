#include "api/custom_input.h"

#include "base/json.h"

namespace coppice::api {
namespace {

constexpr std::string_view kOpening = "{\"input\":\"";

// JSON allows blanks before the opening's brace, its key, its colon and its value.
bool blank_allowed_before(std::size_t at) { return at <= 1 || at + 2 >= kOpening.size(); }

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

constexpr std::size_t kUnicodeEscape = 6;  // bytes of "\u00e9"

bool is_unicode(std::string_view escape) { return escape.size() >= 2 && escape[1] == 'u'; }

// Of two escapes that stand for one character beyond the first 65,536, the first. REQUIRES: a whole unicode escape.
bool begins_pair(std::string_view escape) {
  const char high = escape[2], low = escape[3];
  return (high == 'd' || high == 'D') && std::string_view("89abAB").find(low) != std::string_view::npos;
}

bool is_whole(std::string_view escape) {
  if (!is_unicode(escape)) return escape.size() == 2;
  if (escape.size() < kUnicodeEscape) return false;
  return escape.size() == (begins_pair(escape) ? 2 * kUnicodeEscape : kUnicodeEscape);
}

}  // namespace

std::string CustomInput::feed(std::string_view arguments) {
  const std::size_t before = text_.size();
  for (const char c : arguments) {
    if (state_ == State::opening) {
      open(c);
    } else if (state_ == State::text) {
      add(c);
    }
  }
  return text_.substr(before);
}

void CustomInput::open(char c) {
  if (c == kOpening[opened_]) {
    if (++opened_ == kOpening.size()) state_ = State::text;
  } else if (!is_blank(c) || !blank_allowed_before(opened_)) {
    state_ = State::other;
  }
}

void CustomInput::add(char c) {
  if (!escape_.empty() || c == '\\') {
    add_to_escape(c);
  } else if (c == '"') {
    state_ = State::ended;
  } else {
    text_ += c;
  }
}

void CustomInput::add_to_escape(char c) {
  escape_ += c;
  if (!is_whole(escape_)) return;
  const Json parsed = Json::parse('"' + escape_ + '"', nullptr, /*allow_exceptions=*/false);
  escape_.clear();
  if (parsed.is_string()) {
    text_ += parsed.get_ref<const std::string&>();
  } else {
    state_ = State::ended;  // no JSON; what was told cannot be taken back
  }
}

}  // namespace coppice::api
