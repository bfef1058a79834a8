// Results of what can fail while measuring: a value, or a sentence for a person.
#pragma once

#include <expected>
#include <string>

namespace coppice::bench {

template <class T>
using Result = std::expected<T, std::string>;
using Status = Result<void>;

}  // namespace coppice::bench
