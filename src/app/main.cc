#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "app/cli.h"
#include "base/byte_buffers.h"

int main(int argc, char** argv) {
  try {
    coppice::keep_large_buffers_apart();
    return coppice::app::run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "coppice: %s\n", e.what());
    return 1;
  }
}
