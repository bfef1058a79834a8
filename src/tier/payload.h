// A block's bytes, whose buffer is used again once nobody has them any more.
#pragma once

#include <utility>
#include <vector>

#include "base/byte_buffers.h"
#include "tier/block.h"

namespace coppice::tier {

inline Payload make_payload(std::vector<std::byte> bytes) {
  return {new std::vector<std::byte>(std::move(bytes)), [](std::vector<std::byte>* gone) {
            give_buffer(std::move(*gone));
            delete gone;
          }};
}

}  // namespace coppice::tier
