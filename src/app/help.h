// What --help, --help-llama and --version print. Pure.
#pragma once

#include <string>

namespace coppice::app {

std::string version_text();
std::string program_help();  // coppice --help
std::string serve_help();    // coppice serve --help
std::string llama_help();    // coppice serve --help-llama: llama.cpp's options that are kept

}  // namespace coppice::app
