// The all-reduce between lanes that are threads of this process: everybody
// shows its part, waits for the others, and adds all parts in lane order.
//
// Every lane must come to its sums in the same order, which is what the
// announced sequence is for. A lane that waits in vain gives up after the
// patience: then the sum is worthless and failed() says so, for good; parts
// belong to the group, so that a late lane still reads what was shown.
//
// Thread safety: each lane's sums come from one thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "executor/model_lane_sum.h"

namespace rrfp {

class LaneGroup {
 public:
  LaneGroup(int lanes, std::int64_t patience_ns)
      : parts_(static_cast<std::size_t>(lanes)), patience_ns_(patience_ns) {}

  Matrix sum(int lane, Matrix part);
  bool failed();

 private:
  void meet(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Matrix> parts_;
  std::size_t here_ = 0;
  std::int64_t meetings_ = 0;
  bool failed_ = false;
  const std::int64_t patience_ns_;
};

/// One lane's side of a group.
class GroupLaneSum final : public LaneSum {
 public:
  GroupLaneSum(LaneGroup& group, int lane) : group_(&group), lane_(lane) {}
  Matrix sum(std::vector<Matrix> parts) override {
    return group_->sum(lane_, std::move(parts.front()));
  }

 private:
  LaneGroup* group_;
  int lane_;
};

}  // namespace rrfp
