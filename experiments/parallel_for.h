// Does a number of independent pieces of work on several threads.
//
// Thread safety: the function blocks until all its threads have ended.
#pragma once

#include <cstddef>
#include <functional>

namespace rrfp {

/// As many as the machine runs at once, at least 1.
int usual_threads();

/// Calls work(i) for i in [0, count), each once, in ascending order of start,
/// until all are done or one call returns false. Every call that was begun is
/// finished, so if work(i) is the lowest that returned false, then all before
/// i have been done: what came first does not depend on the threads.
/// REQUIRES: threads >= 1; `work` may be called by several threads at once.
void parallel_for(std::size_t count, int threads, const std::function<bool(std::size_t)>& work);

}  // namespace rrfp
