// An environment variable for the length of a test.
#pragma once

#include <cstdlib>

namespace coppice {

struct Env {
  Env(const char* n, const char* value) : name(n) { ::setenv(n, value, 1); }
  ~Env() { ::unsetenv(name); }
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;
  const char* name;
};

}  // namespace coppice
