#include "kv/prefix.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace coppice::kv {
namespace {

RC_GTEST_PROP(Prefix, EndsAtTheFirstDifference, ()) {
  const auto length = static_cast<std::size_t>(*rc::gen::inRange(0, 1200));
  Tokens a(length, 3), b = a;
  b.resize(length + static_cast<std::size_t>(*rc::gen::inRange(0, 3)), 3);
  std::size_t expected = length;
  if (length > 0 && *rc::gen::arbitrary<bool>()) {
    expected = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(length)));
    b[expected] = 4;
  }
  RC_ASSERT(common_prefix(a, b) == static_cast<TokenPos>(expected));
  RC_ASSERT(common_prefix(b, a) == static_cast<TokenPos>(expected));
}

}  // namespace
}  // namespace coppice::kv
