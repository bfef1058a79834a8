// What Coppice makes of each of llama-server's flags: one table, complete for the llama.cpp version in use (a test says
// so), from which command-line checks, environment checks and --help-llama all read. Pure but for reading the
// environment.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace coppice::app {

enum class Fate : std::uint8_t {
  kept,     // goes to llama-common's parser and works as in llama-server
  ours,     // a flag of our own has this name (app/own_flags.h)
  ignored,  // asks for what is so anyway; accepted, with a note
  refused,  // would have no effect or a wrong one; the reason says what to do instead
};

struct Ruling {
  Fate fate;
  std::string_view reason;                // for a person, after "NAME: "; empty for kept and ours
  std::string_view harmless_value;        // a refused flag with this value is ignored instead; empty: none
  std::vector<std::string_view> options;  // each by its first name, or by the first of its --no-... names
};

std::span<const Ruling> llama_rulings();

// The ruling on a spelling such as "-np" or "--no-mmap"; nullptr if llama-server does not know it. A --no-... form
// without a ruling of its own shares the one of the option it negates.
const Ruling* find_ruling(std::string_view spelling);

// What to do with one use of a flag: nothing (kept), a note, or an error. `value` is empty for switches.
struct Verdict {
  bool pass_on = false;  // hand it to llama-common
  std::string note;      // print it; empty: nothing to say
};
Result<Verdict> judge(std::string_view spelling, std::string_view value);

// The same for every LLAMA_ARG_* variable that is set. Returns the notes.
Result<std::vector<std::string>> judge_environment();

}  // namespace coppice::app
