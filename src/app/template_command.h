// `coppice template`: what a chat template does to the prefix of a conversation that goes on, and what the server does
// about it (spec B25, docs/idle-prefill.md). Threading: one thread.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace coppice::app {

// Returns the exit status: 0 shown, 1 the template cannot be read or used, 2 wrong usage.
int run_template(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

}  // namespace coppice::app
