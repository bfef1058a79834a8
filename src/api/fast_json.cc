#include "api/fast_json.h"

#include <simdjson.h>

#include <string>
#include <utility>

#include "base/json.h"

namespace coppice::api {
namespace {

namespace dom = simdjson::dom;

class Converter {
 public:
  explicit Converter(const FastJsonLimits& limits) : limits_(limits) {}

  // False when a limit is exceeded or a value is of no known kind. `depth`: of the arrays and objects around it.
  bool convert(dom::element from, int depth, Json& to) {
    switch (from.type()) {
      case dom::element_type::ARRAY: return convert_array(dom::array(from), depth + 1, to);
      case dom::element_type::OBJECT: return convert_object(dom::object(from), depth + 1, to);
      case dom::element_type::STRING: to = std::string(std::string_view(from)); return true;
      case dom::element_type::UINT64: to = std::uint64_t(from); return true;
      case dom::element_type::DOUBLE: to = double(from); return true;
      case dom::element_type::BOOL: to = bool(from); return true;
      case dom::element_type::NULL_VALUE: to = nullptr; return true;
      case dom::element_type::INT64: {
        // Signed is to Json what is below zero.
        const std::int64_t number = from;
        if (number < 0) {
          to = number;
        } else {
          to = static_cast<std::uint64_t>(number);
        }
        return true;
      }
    }
    return false;
  }

 private:
  bool convert_array(dom::array from, int depth, Json& to) {
    if (depth > limits_.depth_max) return false;
    Json::array_t items(from.size());
    std::size_t i = 0;
    for (const dom::element item : from) {
      if (i == items.size()) items.emplace_back();  // the size that it says of itself is bounded
      if (!convert(item, depth, items[i++])) return false;
    }
    to = std::move(items);
    return true;
  }

  bool convert_object(dom::object from, int depth, Json& to) {
    if (depth > limits_.depth_max) return false;
    Json::object_t members;
    members.reserve(from.size());
    for (const auto& [key, value] : from) {
      key_comparisons_ += members.size() + 1;
      if (key_comparisons_ > limits_.key_comparisons_max) return false;
      // Of two of the same name the last counts, in the place of the first.
      if (!convert(value, depth, members[std::string(key)])) return false;
    }
    to = std::move(members);
    return true;
  }

  const FastJsonLimits limits_;
  std::uint64_t key_comparisons_ = 0;
};

}  // namespace

std::optional<Json> parse_fast(std::string_view text, const FastJsonLimits& limits) try {
  dom::parser parser;
  if (parser.allocate(text.size(), static_cast<std::size_t>(limits.depth_max) + 1) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  dom::element root;
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
  Json out;
  if (!Converter(limits).convert(root, 0, out)) return std::nullopt;
  return out;
} catch (const simdjson::simdjson_error&) {
  return std::nullopt;  // not meant to happen: kinds are looked at before values
}

}  // namespace coppice::api
