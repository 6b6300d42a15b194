// How many cores this machine has for threads that look all the time.
//
// Thread safety: any.
#pragma once

#include <algorithm>
#include <thread>

namespace rrfp {

/// At least one.
inline int core_count() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace rrfp
