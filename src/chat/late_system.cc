#include "chat/late_system.h"

#include <exception>
#include <utility>

namespace coppice::chat {
namespace {

constexpr const char* separator = "\n\n";

bool is_system(const common_chat_msg& message) { return message.role == "system" || message.role == "developer"; }

common_chat_msg make_message(std::string role, std::string content) {
  common_chat_msg message;
  message.role = std::move(role);
  message.content = std::move(content);
  return message;
}

void append(common_chat_msg& to, const common_chat_msg& from) {
  if (!to.content.empty() && !from.content.empty()) to.content += separator;
  to.content += from.content;
}

}  // namespace

std::string_view name(LateSystemFate fate) {
  switch (fate) {
    case LateSystemFate::in_place: return "in_place";
    case LateSystemFate::refused: return "refused";
    case LateSystemFate::lost_or_moved: return "lost_or_moved";
  }
  return {};
}

std::string_view name(LateSystem form) {
  switch (form) {
    case LateSystem::native: return "system";
    case LateSystem::as_user: return "user";
    case LateSystem::merged_user: return "user_merged";
  }
  return {};
}

LateSystemProbe probe_late_system(const RenderMessages& render) {
  const std::vector<common_chat_msg> conversation = {
      make_message("system", "First rule."), make_message("user", "A question."),
      make_message("assistant", "An answer."), make_message("system", "Late-rule."), make_message("user", "More.")};
  LateSystemProbe result;
  for (const LateSystem form : {LateSystem::native, LateSystem::as_user, LateSystem::merged_user}) {
    auto messages = conversation;
    adapt_late_system(form, messages);
    try {
      const std::string prompt = render(messages);
      const auto answer = prompt.find("An answer."), rule = prompt.find("Late-rule."), more = prompt.find("More.");
      const bool in_place = answer < rule && rule < more && more != std::string::npos;
      result.form = form;
      if (in_place && prompt.find("First rule.") != std::string::npos) return result;
      if (form == LateSystem::native) result.fate = LateSystemFate::lost_or_moved;
    } catch (const std::exception&) {  // this form is refused; the next may not be
      if (form == LateSystem::native) result.fate = LateSystemFate::refused;
    }
  }
  result.form = LateSystem::native;
  result.works = false;
  return result;
}

void adapt_late_system(LateSystem form, std::vector<common_chat_msg>& messages) {
  if (form == LateSystem::native) return;
  std::vector<common_chat_msg> out;
  out.reserve(messages.size());
  bool merge_next_user = false;
  for (common_chat_msg& message : messages) {
    const bool late = is_system(message) && !out.empty();
    if (late && out.size() == 1 && is_system(out.front())) {  // several at the front are one
      append(out.front(), message);
      continue;
    }
    if (late) message.role = "user";
    const bool neighbours = form == LateSystem::merged_user && message.role == "user" && !out.empty() &&
                            out.back().role == "user" && (late || merge_next_user);
    merge_next_user = late;
    if (neighbours) {
      append(out.back(), message);
    } else {
      out.push_back(std::move(message));
    }
  }
  messages = std::move(out);
}

}  // namespace coppice::chat
