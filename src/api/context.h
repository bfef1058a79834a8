// What all handlers share. Immutable, so safe from any thread; exchanges keep it alive.
#pragma once

#include "api/auth.h"
#include "api/services.h"

namespace coppice::api {

struct Context {
  explicit Context(Services wired) : services(std::move(wired)), keyring(services.api_keys) {}

  const Services services;
  const Keyring keyring;
};

}  // namespace coppice::api
