#include "chat/json_fields.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json.h"

namespace coppice::chat {

Result<std::optional<std::string>> string_field(const Json& object, std::string_view key, const std::string& path) {
  const Json* value = find_field(object, key);
  if (value == nullptr) return std::nullopt;
  const std::string param = path + std::string(key);
  if (!value->is_string()) return invalid("'" + param + "' must be a string, not " + kind_of(*value) + ".", param);
  return value->get<std::string>();
}

Result<std::optional<bool>> bool_field(const Json& object, std::string_view key, const std::string& path) {
  const Json* value = find_field(object, key);
  if (value == nullptr) return std::nullopt;
  const std::string param = path + std::string(key);
  if (!value->is_boolean())
    return invalid("'" + param + "' must be true or false, not " + kind_of(*value) + ".", param);
  return value->get<bool>();
}

Result<void> check_depth(const Json& value, const std::string& param) {
  std::vector<std::pair<const Json*, std::size_t>> open{
      {&value, 1}};  // a stack of our own: the input chooses the depth
  while (!open.empty()) {
    const auto [json, depth] = open.back();
    open.pop_back();
    if (!json->is_structured()) continue;
    if (depth > json_depth_max) {
      return invalid("'" + param + "' nests deeper than " + std::to_string(json_depth_max) + " levels.", param);
    }
    for (const Json& child : *json) open.emplace_back(&child, depth + 1);
  }
  return {};
}

std::uint64_t schema_cost(const Json& schema) {
  constexpr std::uint64_t members_max = 1'000'000;  // its cube still fits
  std::uint64_t cost = 0;
  std::vector<const Json*> open{&schema};
  while (!open.empty() && cost <= schema_cost_max) {
    const Json& json = *open.back();
    open.pop_back();
    if (!json.is_structured()) continue;
    const std::uint64_t members = json.is_object() ? std::min<std::uint64_t>(json.size(), members_max) : 0;
    cost += members * members * members;
    for (const Json& child : json) open.push_back(&child);
  }
  return cost;
}

std::string kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "a string";
    case Json::value_t::boolean: return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float: return "a number";
    case Json::value_t::binary:
    case Json::value_t::discarded: break;
  }
  return "something else";
}

}  // namespace coppice::chat
