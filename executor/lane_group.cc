#include "executor/lane_group.h"

#include <chrono>

namespace rrfp {

Matrix LaneGroup::sum(int lane, Matrix part) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (failed_) return part;
  parts_[static_cast<std::size_t>(lane)] = std::move(part);
  meet(lock);
  if (failed_) return parts_[static_cast<std::size_t>(lane)];
  lock.unlock();
  Matrix total = parts_.front();
  for (std::size_t i = 1; i < parts_.size(); ++i) total += parts_[i];
  // Nobody's part may change before everybody has read it.
  lock.lock();
  meet(lock);
  return total;
}

bool LaneGroup::failed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failed_;
}

void LaneGroup::meet(std::unique_lock<std::mutex>& lock) {
  if (failed_) return;
  const std::int64_t meeting = meetings_;
  if (++here_ == parts_.size()) {
    here_ = 0;
    ++meetings_;
    changed_.notify_all();
    return;
  }
  const auto deadline = std::chrono::system_clock::now() + std::chrono::nanoseconds(patience_ns_);
  const bool met =
      changed_.wait_until(lock, deadline, [&] { return failed_ || meetings_ != meeting; });
  if (met && !failed_) return;
  failed_ = true;
  changed_.notify_all();
}

}  // namespace rrfp
