// Ids and token types shared by every layer. Header-only, no dependencies.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

namespace coppice {

// An integer that cannot be mixed up with another kind of id. `Tag` only names the kind.
template <class Tag, class Rep>
struct StrongId {
  Rep value{};
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
};

using SeqId = StrongId<struct SeqTag, std::int32_t>;           // one line of KV cells in the llama context
using SlotId = StrongId<struct SlotTag, std::int32_t>;         // a lane that runs one request at a time
using RequestId = StrongId<struct RequestTag, std::uint64_t>;  // one completion inside this process
// Isolation domain of KV (API key, cache_salt). KV is never shared between two of them. 0 is the default domain.
using NamespaceId = StrongId<struct NamespaceTag, std::uint64_t>;

using Token = std::int32_t;     // a vocabulary id
using TokenPos = std::int32_t;  // a position in a sequence; counts of tokens and cells use it too
using Tokens = std::vector<Token>;

}  // namespace coppice

template <class Tag, class Rep>
struct std::hash<coppice::StrongId<Tag, Rep>> {
  std::size_t operator()(coppice::StrongId<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};
