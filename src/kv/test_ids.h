// Short names for the sequences and namespaces that the tests of this layer speak of.
#pragma once

#include "base/ids.h"

namespace coppice::kv {

inline constexpr NamespaceId ns{0}, elsewhere{7};
inline constexpr SeqId a{0}, b{1}, c{2};

}  // namespace coppice::kv
