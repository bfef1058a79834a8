// System messages after the first turn ("late"). Agents send them in the middle of a conversation; moving one to the
// front would change the prompt at its start and lose the whole cached prefix, so each stays where it is, in the best
// form that the template renders.
#pragma once

#include <chat.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::chat {

enum class LateSystem {
  native,       // the template renders them in place
  as_user,      // it refuses or drops them, but takes another user message in the same place
  merged_user,  // as_user, and neighbouring user messages become one, for templates that insist on alternating roles
};

// Renders messages to a prompt; throws when the template refuses them.
using RenderMessages = std::function<std::string(const std::vector<common_chat_msg>&)>;

// What the template itself does with them.
enum class LateSystemFate { in_place, refused, lost_or_moved };

struct LateSystemProbe {
  LateSystemFate fate = LateSystemFate::in_place;
  LateSystem form = LateSystem::native;
  bool works = true;  // false: no form puts them where they were; `form` is native then
};

// Tries the forms in the order above on a small conversation.
LateSystemProbe probe_late_system(const RenderMessages& render);

// For people.
std::string_view name(LateSystemFate fate);
std::string_view name(LateSystem form);

void adapt_late_system(LateSystem form, std::vector<common_chat_msg>& messages);

}  // namespace coppice::chat
