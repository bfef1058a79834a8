// Checked reading of client JSON: typed optional fields where null means absent, and limits that keep recursive code
// safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json_find.h"
#include "base/json_fwd.h"
#include "base/json_text.h"

namespace coppice::chat {

// How deep tools, schemas, tool arguments and template arguments may nest: the template engine and the grammar builder
// recurse over them.
inline constexpr std::size_t json_depth_max = 64;

// The most that the schemas of one request may cost together. Building the grammar of an object takes time with the
// cube of its members (measured: 1,024 of them 8 s, 256 of them 0.25 s), so this is the sum of those cubes.
inline constexpr std::uint64_t schema_cost_max = 100'000'000;

// A missing or null field gives nullopt. Errors: invalid_request naming `path` + key.
Result<std::optional<std::string>> string_field(const Json& object, std::string_view key, const std::string& path = {});
Result<std::optional<bool>> bool_field(const Json& object, std::string_view key, const std::string& path = {});

// Errors: invalid_request naming `param` when `value` nests too deeply.
Result<void> check_depth(const Json& value, const std::string& param);

std::uint64_t schema_cost(const Json& schema);

// "a string", "an array", ... for error messages.
std::string kind_of(const Json& value);

}  // namespace coppice::chat
