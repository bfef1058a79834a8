// Numbers and tables as text: for the terminal, and as Markdown for documents.
#pragma once

#include <string>
#include <vector>

#include "report/digest.h"

namespace coppice::bench {

// Three significant digits; counts in full.
std::string number_text(double value, Unit unit);
// "median (min-max)", or the median alone where all are equal.
std::string summary_text(const Summary& summary, Unit unit);
std::string ratio_text(const Summary& ratio);

// The cells of one section's table, a header row first: variant, measure, each server, others over the first server,
// each server over the floor.
std::vector<std::vector<std::string>> table_of(const Section& section, const std::vector<std::string>& servers);

// What went wrong in a section's episodes, each once, and what was left out for want of time.
std::vector<std::string> notes_of(const Section& section);

std::string plain_table(const std::vector<std::vector<std::string>>& rows);
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace coppice::bench
