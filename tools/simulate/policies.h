// The servers and policies that the simulator compares, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulate/costs.h"
#include "simulate/replay.h"

namespace coppice::simulate {

struct Named {
  std::string name;
  std::string about;  // for the table's foot
};

std::vector<Named> policy_names();

// An error for an unknown name. `costs` must outlive what it makes.
bench::Result<MakeServer> make_policy(std::string_view name, const Room& room, const Costs& costs);

}  // namespace coppice::simulate
