// Coppice's own flags of `coppice serve`, one table: what they are called, what they mean, how they are read.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/config.h"
#include "base/error.h"

namespace coppice::app {

struct OwnFlag {
  std::string_view group;  // heading in --help
  std::vector<std::string_view> names;
  std::string_view negation = {};  // "--no-metrics" or empty
  std::string_view value_hint;     // empty: a switch
  std::string_view env;            // COPPICE_*; empty: none
  std::string_view default_text;
  std::string_view help;
  // Stores the value; `on` is false for the negation. Errors: invalid_request without the flag's name.
  Result<void> (*apply)(Command& command, std::string_view value, bool on);

  bool takes_value() const { return !value_hint.empty(); }
};

std::span<const OwnFlag> own_flags();
const OwnFlag* find_own_flag(std::string_view spelling);  // by name or negation; nullptr if it is not ours

// Applies every COPPICE_* variable that is set. Errors: invalid_request naming the variable.
Result<void> apply_own_environment(Command& command);

}  // namespace coppice::app
