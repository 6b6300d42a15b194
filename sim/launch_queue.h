// When everything of a LaunchProgram happens: the max-plus evaluation of
// launch queues, streams and hosts.
//
//  1. issue(k) = max(time the host posted it, issue(k-1) in that rank's queue,
//     done of the entry before it on the same stream, done of what it waits
//     for).
//  2. compute and delay: done = issue + length. wait: done = issue.
//  3. A message ends at max(issue of its two entries) + message_ns * max(number
//     of operations of the two). A communication entry is done when all its
//     messages have ended.
//  4. The host goes on at once after delay and communication entries, and when
//     the entry is done after compute and wait entries.
//
// Nothing depends on ties or on the order of evaluation. An entry that can
// never issue, because ranks wait for each other in a cycle or because the
// other end of a message is never posted, stays kNever.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/launch_program.h"

namespace rrfp {

/// An instant that does not come.
inline constexpr std::int64_t kNever = -1;

struct LaunchRankTimes {
  std::vector<std::int64_t> decided_ns;  ///< by action: the host turns to it
  std::vector<std::int64_t> issue_ns;    ///< by action
  std::vector<std::int64_t> done_ns;     ///< by action
};

struct LaunchTimes {
  bool completed = true;         ///< every action of every rank is done, and no rank was cut
  std::int64_t makespan_ns = 0;  ///< latest done of a compute or wait
  std::vector<LaunchRankTimes> ranks;
  /// By message: when both ends had issued, and when it ended; kNever.
  std::vector<std::int64_t> sent_ns;
  std::vector<std::int64_t> arrival_ns;
};

/// Linear in the actions and operations.
LaunchTimes evaluate(const LaunchProgram& program);

}  // namespace rrfp
