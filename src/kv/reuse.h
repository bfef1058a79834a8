// The words with which reuse is reported (spec A13, A14). Plain enums with their names on the wire.
#pragma once

#include <cstdint>
#include <string_view>

namespace coppice::kv {

// Where reused KV came from.
enum class Source : std::uint8_t {
  none,
  slot,
  donor,
  pool,
  host,
  disk,
  prepared,  // computed while nobody waited, for this very prompt, and used for the first time (spec B25)
};

// Why less was reused than the session's previous prompt would allow.
enum class MissReason : std::uint8_t {
  none,            // nothing was missed
  fresh,           // "new": no earlier prompt to compare with
  diverged,        // the prompt left the known tokens at an index
  evicted,         // it was known once; its cells were given to others
  not_resident,    // the donor that the request named does not hold the prefix it promised
  disabled,        // cache_prompt: false
  not_rewindable,  // this model's state cannot go back to the common point
};

constexpr std::string_view name(Source s) {
  switch (s) {
    case Source::none: return "none";
    case Source::slot: return "slot";
    case Source::donor: return "donor";
    case Source::pool: return "pool";
    case Source::host: return "host";
    case Source::disk: return "disk";
    case Source::prepared: return "prepared";
  }
  return "";
}

constexpr std::string_view name(MissReason r) {
  switch (r) {
    case MissReason::none: return "";
    case MissReason::fresh: return "new";
    case MissReason::diverged: return "diverged";
    case MissReason::evicted: return "evicted";
    case MissReason::not_resident: return "not_resident";
    case MissReason::disabled: return "disabled";
    case MissReason::not_rewindable: return "not_rewindable";
  }
  return "";
}

}  // namespace coppice::kv
