#include "engine/json_schema_check.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "base/json.h"

namespace coppice::engine {
namespace {

constexpr int kSchemaDepthMax = 100;
constexpr int kRefHopsMax = 16;
constexpr std::size_t kPropertiesMax = 300;  // of one object; the converter's work grows with their cube
constexpr std::int64_t kNodesMax = 100'000;  // JSON values, counted as often as the converter visits them

// The local target of a "$ref"; nullptr when there is none, which the converter reports itself.
const Json* target_of(const Json& root, const std::string& ref) {
  const std::size_t hash = ref.find("#/");
  if (hash == std::string::npos) return nullptr;
  try {
    const Json::json_pointer pointer(ref.substr(hash + 1));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const Json::exception&) {
    return nullptr;
  }
}

const std::string* ref_of(const Json& node) {
  if (!node.is_object()) return nullptr;
  const auto it = node.find("$ref");
  return it != node.end() ? it->get_ptr<const std::string*>() : nullptr;
}

// Only a chain of nothing but "$ref"s is endless; recursion through properties is fine.
bool ends(const Json& root, const Json& node) {
  const Json* at = &node;
  for (int hop = 0; hop < kRefHopsMax; ++hop) {
    const std::string* ref = ref_of(*at);
    if (ref == nullptr) return true;
    at = target_of(root, *ref);
    if (at == nullptr) return true;
  }
  return false;
}

// How often the converter visits the parts of `node`: once for each entry of a "type" array.
std::int64_t branches(const Json& node) {
  if (!node.is_object()) return 1;
  const auto it = node.find("type");
  return it != node.end() && it->is_array() && !it->empty() ? static_cast<std::int64_t>(it->size()) : 1;
}

}  // namespace

bool json_depth_within(const Json& value, int depth_max) {
  std::vector<std::pair<const Json*, int>> work{{&value, 1}};
  while (!work.empty()) {
    const auto [node, depth] = work.back();
    work.pop_back();
    if (!node->is_structured()) continue;
    if (depth > depth_max) return false;
    for (const Json& child : *node) work.emplace_back(&child, depth + 1);
  }
  return true;
}

Result<void> check_json_schema(const Json& schema, const std::string& param) {
  if (!schema.is_object() && !schema.is_boolean()) return invalid("a JSON schema must be an object", param);
  if (!json_depth_within(schema, kSchemaDepthMax)) return invalid("the JSON schema is nested too deeply", param);
  std::int64_t nodes = 0;
  std::vector<std::pair<const Json*, std::int64_t>> work{{&schema, 1}};
  while (!work.empty()) {
    const auto [node, times] = work.back();
    work.pop_back();
    nodes += times;
    if (nodes > kNodesMax) return invalid("the JSON schema is too large", param);
    if (!ends(schema, *node)) return invalid("the JSON schema has a circular \"$ref\": " + *ref_of(*node), param);
    if (node->is_object() && node->size() > kPropertiesMax) {
      return invalid("an object in the JSON schema has more than 300 properties", param);
    }
    const std::int64_t inside = times * branches(*node);
    for (const Json& child : *node) {
      if (child.is_structured()) {
        work.emplace_back(&child, inside);
      } else {
        nodes += inside;
      }
    }
  }
  return {};
}

}  // namespace coppice::engine
