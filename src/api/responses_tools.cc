#include "api/responses_tools.h"

#include <set>

#include "api/fields.h"
#include "base/json.h"
#include "base/json_text.h"

namespace coppice::api {
namespace {

std::string text_of(const Json& object, const char* field) {
  const auto it = object.find(field);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string{};
}

std::string join(const std::string& space, const std::string& name) {
  if (space.empty()) return name;
  return space.ends_with("__") ? space + name : space + "__" + name;
}

Result<std::string> required_name(FieldReader& in, const std::string& path) {
  std::string name = in.string("name", kWordBytesMax);
  if (in.error()) return std::unexpected(*in.error());
  if (name.empty()) return invalid("'" + path + "name' is required", path + "name");
  return name;
}

// The description of a custom tool, with the grammar that its input should follow: the model is asked, not forced.
std::string custom_description(const Json& tool) {
  std::string text = text_of(tool, "description");
  const auto format = tool.find("format");
  if (format == tool.end() || !format->is_object() || text_of(*format, "type") != "grammar") return text;
  if (!text.empty()) text += "\n\n";
  return text + "The input must follow this " + text_of(*format, "syntax") + " grammar:\n" +
         text_of(*format, "definition");
}

Json free_text_schema() {
  return {{"type", "object"},
          {"properties", {{"input", {{"type", "string"}}}}},
          {"required", Json::array({"input"})},
          {"additionalProperties", false}};
}

class ToolReader {
 public:
  // Adds one tool, or those of a namespace.
  Result<void> add(const Json& tool, const std::string& path, const std::string& space) {
    if (!tool.is_object()) return invalid("'" + path + "' must be an object", path);
    FieldReader in(tool, path + ".");
    const std::string type = in.string("type", kWordBytesMax);
    if (in.error()) return std::unexpected(*in.error());
    if (type.empty()) return invalid("'" + path + ".type' is required", path + ".type");
    if (type == "namespace" && space.empty()) return add_namespace(tool, in, path);
    if (type == "function") return add_function(in, path, space);
    if (type == "custom") return add_custom(tool, in, path, space);
    return {};
  }

  ToolNames names;
  Json functions = Json::array();

 private:
  Result<void> add_namespace(const Json& tool, FieldReader& in, const std::string& path) {
    const auto space = required_name(in, path + ".");
    if (!space) return std::unexpected(space.error());
    const Json* tools = FieldReader(tool).find("tools");
    if (tools == nullptr) return {};
    if (!tools->is_array()) return invalid("'" + path + ".tools' must be an array", path + ".tools");
    for (std::size_t i = 0; i < tools->size(); ++i) {
      if (auto ok = add((*tools)[i], path + ".tools[" + std::to_string(i) + "]", *space); !ok) return ok;
    }
    return {};
  }

  Result<void> add_function(FieldReader& in, const std::string& path, const std::string& space) {
    const auto name = required_name(in, path + ".");
    if (!name) return std::unexpected(name.error());
    const std::string description = in.string("description", kTextBytesMax);
    if (in.error()) return std::unexpected(*in.error());
    Json function = {{"name", names.add({*name, space, false})}, {"description", description}};
    if (const Json* schema = in.find("parameters")) function["parameters"] = *schema;
    push(std::move(function));
    return {};
  }

  Result<void> add_custom(const Json& tool, FieldReader& in, const std::string& path, const std::string& space) {
    const auto name = required_name(in, path + ".");
    if (!name) return std::unexpected(name.error());
    in.string("description", kTextBytesMax);
    if (const Json* format = in.find("format"); format != nullptr && format->is_object()) {
      FieldReader nested(*format, path + ".format.");
      for (const char* field : {"type", "syntax", "definition"}) nested.string(field, kTextBytesMax);
      if (nested.error()) return std::unexpected(*nested.error());
    }
    if (in.error()) return std::unexpected(*in.error());
    push({{"name", names.add({*name, space, true})},
          {"description", custom_description(tool)},
          {"parameters", free_text_schema()}});
    return {};
  }

  void push(Json function) { functions.push_back({{"type", "function"}, {"function", std::move(function)}}); }
};

std::string flat_choice(const Json& choice, const ToolNames& names) {
  return names.flat(text_of(choice, "namespace"), text_of(choice, "name"));
}

// A list of the tools that may be used: the others are not shown to the model. (Chat templates know no better way, so
// the prompt changes with the list.)
Result<void> apply_allowed(const Json& choice, const ToolNames& names, Json& chat) {
  const std::string field = "tool_choice.tools";
  const Json* tools = FieldReader(choice).find("tools");
  if (tools == nullptr || !tools->is_array()) return invalid("'" + field + "' must be an array", field);
  std::set<std::string> allowed;
  for (const Json& tool : *tools) {
    if (!tool.is_object()) return invalid("'" + field + "' must hold objects", field);
    allowed.insert(flat_choice(tool, names));
  }
  Json kept = Json::array();
  for (Json& tool : chat["tools"]) {
    if (allowed.contains(tool["function"]["name"].get<std::string>())) kept.push_back(std::move(tool));
  }
  chat["tools"] = std::move(kept);
  chat["tool_choice"] = text_of(choice, "mode") == "required" ? "required" : "auto";
  return {};
}

Result<void> read_choice(const Json& body, const ToolNames& names, Json& chat) {
  const Json* choice = FieldReader(body).find("tool_choice");
  if (choice == nullptr) return {};
  if (!choice->is_object()) {  // a word, and if it is not one, chat says so
    chat["tool_choice"] = *choice;
    return {};
  }
  const std::string type = text_of(*choice, "type");
  if (type == "allowed_tools") return apply_allowed(*choice, names, chat);
  if (type == "function" || type == "custom") {
    chat["tool_choice"] = {{"type", "function"}, {"function", {{"name", flat_choice(*choice, names)}}}};
    return {};
  }
  if (type.empty()) return invalid("'tool_choice.type' is required", "tool_choice.type");
  return {};  // a hosted tool, which is not here
}

}  // namespace

std::string ToolNames::add(const ToolName& tool) {
  const auto key = std::pair(tool.space, tool.name);
  if (const auto known = by_tool_.find(key); known != by_tool_.end()) return known->second;
  std::string flat = join(tool.space, tool.name);
  while (by_flat_.contains(flat)) flat += '_';
  by_flat_[flat] = tool;
  by_tool_[key] = flat;
  return flat;
}

std::string ToolNames::flat(const std::string& space, const std::string& name) const {
  const auto known = by_tool_.find(std::pair(space, name));
  return known == by_tool_.end() ? join(space, name) : known->second;
}

ToolName ToolNames::find(const std::string& flat) const {
  const auto found = by_flat_.find(flat);
  return found == by_flat_.end() ? ToolName{flat, "", false} : found->second;
}

std::string custom_arguments(const std::string& input) { return to_text(Json{{"input", input}}); }

std::string custom_input(const std::string& arguments) {
  const Json parsed = Json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return arguments;
  const auto input = parsed.find("input");
  return input != parsed.end() && input->is_string() ? input->get<std::string>() : arguments;
}

Result<ToolNames> read_tools(const Json& body, Json& chat) {
  ToolReader reader;
  if (const Json* tools = FieldReader(body).find("tools")) {
    if (!tools->is_array()) return invalid("'tools' must be an array", "tools");
    for (std::size_t i = 0; i < tools->size(); ++i) {
      if (auto ok = reader.add((*tools)[i], "tools[" + std::to_string(i) + "]", ""); !ok) {
        return std::unexpected(ok.error());
      }
    }
  }
  chat["tools"] = std::move(reader.functions);
  if (auto ok = read_choice(body, reader.names, chat); !ok) return std::unexpected(ok.error());
  if (chat["tools"].empty()) chat.erase("tools");
  return std::move(reader.names);
}

}  // namespace coppice::api
