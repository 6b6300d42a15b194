// What a rank that cannot go on for want of memory says of it.
//
// Thread safety: pure function.
#pragma once

#include <string>

#include "executor/core_machines.h"
#include "traces/prepared_case.h"

namespace rrfp {

/// Where memory holds up what the rank would run next: the first F that is ready
/// and does not fit, what it takes, what there is, and what to change. Else
/// empty. REQUIRES: machines.decides().
std::string memory_wait(const PreparedCase& world, const CoreMachines& machines, int rank);

}  // namespace rrfp
