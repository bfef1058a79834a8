// The command line: which command, and what it prints. Exit status: 0 success, 1 could not
// start or something is wrong, 2 wrong usage.
#pragma once

#include <string>
#include <vector>

namespace coppice::app {

int run(const std::vector<std::string>& args);  // without the program's name

}  // namespace coppice::app
