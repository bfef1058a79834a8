#include "api/normalise.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "api/message_role.h"
#include "base/json.h"

namespace coppice::api {
namespace {

constexpr std::string_view kAttribution = "x-anthropic-";

// The text of a text part, or null.
const std::string* text_of(const Json& part) {
  if (!part.is_object()) return nullptr;
  const auto type = part.find("type"), text = part.find("text");
  if (type == part.end() || *type != "text" || text == part.end() || !text->is_string()) return nullptr;
  return text->get_ptr<const std::string*>();
}

void drop_marks(Json& object) {
  if (!object.is_object()) return;
  for (const char* mark : {"cache_control", "prompt_cache_breakpoint"}) object.erase(mark);
}

// False when nothing but attribution was in it.
bool strip_text(Json& text) {
  auto& old = text.get_ref<std::string&>();
  std::string left = without_attribution(old);
  const bool keep = !left.empty() || old.empty();
  old = std::move(left);
  return keep;
}

bool strip_parts(Json& parts) {
  Json kept = Json::array();
  for (Json& part : parts) {
    if (text_of(part) == nullptr || strip_text(part["text"])) kept.push_back(std::move(part));
  }
  const bool keep = !kept.empty() || parts.empty();
  parts = std::move(kept);
  return keep;
}

// False when the message is to go. REQUIRES: an object.
bool normalise_message(Json& message) {
  drop_marks(message);
  const auto content = message.find("content");
  if (content == message.end()) return true;
  bool keep = true;
  if (is_system(message)) {
    if (content->is_string()) keep = strip_text(*content);
    if (content->is_array()) keep = strip_parts(*content);
  }
  if (auto text = joined_text(*content)) *content = *std::move(text);
  return keep;
}

constexpr std::size_t kMarksMax = 8;  // of one request; agents set four at most

// By the message that they end with.
class Marks {
 public:
  void add(std::ptrdiff_t message, std::optional<Duration> ttl) {
    if (ttl) by_message_[message] = std::max(by_message_[message], *ttl);
  }
  std::vector<CacheMark> last(std::size_t count_max) const {
    std::vector<CacheMark> out;
    for (const auto& [message, ttl] : by_message_) out.push_back({message, ttl});
    if (out.size() > count_max) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(count_max));
    return out;
  }

 private:
  std::map<std::ptrdiff_t, Duration> by_message_;
};

Json* find_list(Json& body, const char* field) {
  const auto found = body.find(field);
  return found != body.end() && found->is_array() ? &*found : nullptr;
}

}  // namespace

std::string without_attribution(std::string text) {
  if (text.find(kAttribution) == std::string::npos) return text;
  std::string out;
  out.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = text.find('\n', begin);
    const std::size_t end = newline == std::string::npos ? text.size() : newline + 1;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (!line.starts_with(kAttribution)) {
      out += line;
    } else if (newline == std::string::npos && out.ends_with('\n')) {
      out.pop_back();  // the last line's newline is the one before it
    }
    begin = end;
  }
  return out;
}

std::optional<std::string> joined_text(const Json& parts) {
  if (!parts.is_array()) return std::nullopt;
  std::string out;
  for (const Json& part : parts) {
    const std::string* text = text_of(part);
    if (text == nullptr) return std::nullopt;
    if (!out.empty()) out += '\n';
    out += *text;
  }
  return out;
}

std::vector<CacheMark> normalise_chat(Json& body) {
  Marks marks;
  const auto breakpoint_ttl = breakpoint_ttl_of(body);
  std::ptrdiff_t n_messages = 0, n_leading_system = 0;
  if (Json* messages = find_list(body, "messages")) {
    Json kept = Json::array();
    for (Json& message : *messages) {
      const auto ttl = marked_ttl(message, breakpoint_ttl);
      if (!message.is_object() || normalise_message(message)) kept.push_back(std::move(message));
      marks.add(static_cast<std::ptrdiff_t>(kept.size()) - 1, ttl);
    }
    *messages = std::move(kept);
    n_messages = static_cast<std::ptrdiff_t>(messages->size());
    n_leading_system = std::find_if_not(messages->begin(), messages->end(), is_system) - messages->begin();
  }
  if (Json* tools = find_list(body, "tools")) {
    for (Json& tool : *tools) {
      marks.add(n_leading_system - 1, marked_ttl(tool, breakpoint_ttl));
      drop_marks(tool);
      if (tool.is_object() && tool.contains("function")) drop_marks(tool["function"]);
    }
  }
  if (n_messages > 0) marks.add(n_messages - 1, whole_prompt_ttl(body));
  return marks.last(kMarksMax);
}

}  // namespace coppice::api
