// The tools of a Responses request as Chat Completions functions, and the way back from a call's name to its tool.
//
// A chat template knows functions with one flat name. Tools in a namespace get a joined name; a custom tool, which
// takes free text, becomes a function with the one string argument "input". Hosted tools (web search, a shell of the
// provider's) are left out: there is nobody here to run them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json_fwd.h"

namespace coppice::api {

struct ToolName {
  std::string name, space;  // space: its namespace, or empty
  bool custom = false;
};

class ToolNames {
 public:
  // The flat name of a tool, unlike that of every other tool. The same tool twice has one name.
  std::string add(const ToolName& tool);

  // The flat name of a call in the history; its tool need not be there any more.
  std::string flat(const std::string& space, const std::string& name) const;

  // The tool that a flat name stands for; a function of that very name if it stands for none.
  ToolName find(const std::string& flat) const;

 private:
  std::map<std::string, ToolName> by_flat_;
  std::map<std::pair<std::string, std::string>, std::string> by_tool_;  // (namespace, name) -> flat
};

// What a custom tool's function takes, as JSON text, and back. Text that is not such an object comes back as it is: the
// answer may have been cut short.
std::string custom_arguments(const std::string& input);
std::string custom_input(const std::string& arguments);

// Reads `tools` and `tool_choice` of `body` and sets those of `chat`. Errors: invalid_request
// naming the field.
Result<ToolNames> read_tools(const Json& body, Json& chat);

}  // namespace coppice::api
