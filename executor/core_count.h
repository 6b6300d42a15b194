// How many cores this process has for threads that look all the time: those
// that it may run on (taskset, a batch system, a container), within the share
// of time that its control group allows, where that is of version 2; shares of
// version 1 are not looked at.
//
// Thread safety: any.
#pragma once

#include <optional>
#include <string>

namespace rrfp {

/// At least one. Of the thread that asks.
int core_count();

/// The same for the processes of a job on this host together: where whoever
/// started this one has more cores, those, for a launcher may have given each
/// process a part of its own.
int launcher_core_count();

/// What a file cpu.max of a control group allows ("200000 100000": two cores),
/// rounded down, one at least; none: as much as there is.
std::optional<int> cores_of_quota(const std::string& cpu_max);

}  // namespace rrfp
