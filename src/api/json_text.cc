#include "api/json_text.h"

#include <array>
#include <cstdint>
#include <optional>

#include "api/fast_json.h"
#include "base/json.h"

namespace coppice::api {
namespace {

// Inserting the n-th key into an object costs n comparisons. This many take some tenths of a second; one object may
// have about 16,000 keys, and usual requests stay thousands of times below.
constexpr std::uint64_t kKeyComparisonsMax = std::uint64_t{1} << 27;

// Looks at the brackets and colons outside strings. Where the text is no JSON the count may be off, but the parser
// stops at that place too, so what it reads before was counted right.
std::optional<Error> refuse_expensive(std::string_view body, const std::string& what) {
  std::array<std::uint32_t, kJsonDepthMax + 1> keys{};
  std::uint64_t comparisons = 0;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kJsonDepthMax) {
        return Error{ErrorKind::invalid_request,
                     "the " + what + " is nested deeper than " + std::to_string(kJsonDepthMax) + " levels", ""};
      }
      keys[static_cast<std::size_t>(depth)] = 0;
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
    } else if (c == ':') {
      comparisons += ++keys[static_cast<std::size_t>(depth)];
      if (comparisons > kKeyComparisonsMax) {
        return Error{ErrorKind::invalid_request, "the " + what + " has objects with too many keys", ""};
      }
    }
  }
  return std::nullopt;
}

// The library prefixes its messages with "[json.exception.kind.number] "; people do not need that.
std::string plain_message(std::string_view what) {
  if (auto end = what.find("] "); what.starts_with('[') && end != std::string_view::npos) what.remove_prefix(end + 2);
  constexpr std::size_t kLengthMax = 300;  // it quotes the input
  return std::string(what.substr(0, kLengthMax));
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& what) {
  constexpr FastJsonLimits kLimits{.depth_max = kJsonDepthMax, .key_comparisons_max = kKeyComparisonsMax};
  if (auto value = parse_fast(text, kLimits)) return *std::move(value);
  // Something is wrong with it, or odd: what, the other parser says.
  if (auto error = refuse_expensive(text, what)) return std::unexpected(*error);
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    return invalid("the " + what + " is not valid JSON: " + plain_message(e.what()));
  }
}

Result<Json> parse_body(std::string_view body) {
  if (body.empty()) return invalid("the body is empty; a JSON object is needed");
  auto value = parse_json(body, "body");
  if (value && !value->is_object()) {
    return invalid(std::string("the body must be a JSON object, not ") + value->type_name());
  }
  return value;
}

std::string to_sse(const Json& value) { return "data: " + to_text(value) + "\n\n"; }

std::string to_event(const Json& value) {
  return "event: " + value.at("type").get_ref<const std::string&>() + "\n" + to_sse(value);
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
    const unsigned lead = byte(i);
    std::size_t length = 1;
    unsigned low = 0x80, high = 0xBF;  // bounds of the second byte
    if (lead >= 0xC2 && lead <= 0xDF) {
      length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      length = 3;
      if (lead == 0xE0) low = 0xA0;   // shorter forms exist
      if (lead == 0xED) high = 0x9F;  // surrogates
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      length = 4;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;  // beyond U+10FFFF
    } else if (lead >= 0x80) {
      return false;
    }
    if (length > 1 && (byte(i + 1) < low || byte(i + 1) > high)) return false;
    for (std::size_t k = 2; k < length; ++k) {
      if ((byte(i + k) & 0xC0U) != 0x80U) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace coppice::api
