// What an import of profiler files used and dropped, as text for people.
//
// Thread safety: pure function.
#pragma once

#include <string>

#include "traces/profile_assembly.h"

namespace rrfp {

/// One row per rank, then notes, clocks and what was dropped and why.
std::string describe_profile_import(const ProfileReport& report);

}  // namespace rrfp
