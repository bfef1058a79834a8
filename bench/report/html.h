// One page with everything: opens from disk, needs nothing else.
#pragma once

#include <string>

#include "report/record.h"

namespace coppice::bench {

std::string html_report(const Results& results);
// The same tables as a Markdown document, without plots and command lines.
std::string markdown_report(const Results& results);

}  // namespace coppice::bench
