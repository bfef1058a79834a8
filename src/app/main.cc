#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "app/cli.h"

int main(int argc, char** argv) {
  try {
    return coppice::app::run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "coppice: %s\n", e.what());
    return 1;
  }
}
