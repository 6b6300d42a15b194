#include "executor/open_file_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace rrfp {

namespace {

// Beside the connections: libraries, devices, what is read and written.
constexpr rlim_t kOtherFiles = 64;
// Strangers that connect while processes meet; wanted, not needed.
constexpr rlim_t kGuests = 512;

}  // namespace

Result<void> allow_connections(int connections) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};  // then opening them will tell
  const rlim_t needed = static_cast<rlim_t>(connections) + kOtherFiles;
  if (limit.rlim_cur >= needed + kGuests) return {};
  if (limit.rlim_max < needed) {
    return Error{"this process may have " + std::to_string(limit.rlim_max) +
                 " files open and needs " + std::to_string(needed) + " for its connections to " +
                 std::to_string(connections) + " others; raise the limit: ulimit -n " +
                 std::to_string(needed + kGuests)};
  }
  limit.rlim_cur = std::min(limit.rlim_max, needed + kGuests);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return {};
  return Error{"cannot raise the number of files that may be open to " +
               std::to_string(limit.rlim_cur) + ": " + std::strerror(errno)};
}

}  // namespace rrfp
