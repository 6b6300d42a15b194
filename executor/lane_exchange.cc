#include "executor/lane_exchange.h"

#include <chrono>
#include <string>

namespace rrfp {

Result<std::vector<Payload>> ThreadsLaneGroup::exchange(int lane, Payload mine) {
  const auto until = std::chrono::system_clock::now() + std::chrono::nanoseconds(patience_ns_);
  const int lanes = this->lanes();
  const auto late = [&] {
    return Error{"lane " + std::to_string(lane) +
                 (gone_ ? " waited for a lane of its group that has ended"
                        : " waited in vain for the other lanes of its group")};
  };
  std::unique_lock<std::mutex> lock(mutex_);
  // The round before may not have been left by all.
  changed_.wait_until(lock, until, [&] { return open_ || gone_; });
  if (!open_) return late();
  const std::uint64_t round = round_;
  parts_[static_cast<std::size_t>(lane)] = std::move(mine);
  if (++came_ == lanes) {
    open_ = false;
    left_ = 0;
    ++round_;
    changed_.notify_all();
  } else {
    changed_.wait_until(lock, until, [&] { return round_ != round || gone_; });
    if (round_ == round) {
      --came_;
      return late();
    }
  }
  std::vector<Payload> all;
  bool same = true;
  for (const Payload& part : parts_) {
    same = same && part.size() == parts_.front().size();
    all.push_back(part.copy());
  }
  if (++left_ == lanes) {
    came_ = 0;
    open_ = true;
    changed_.notify_all();
  }
  if (!same) return Error{"the lanes of a group brought parts of different sizes"};
  return all;
}

void ThreadsLaneGroup::leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  gone_ = true;
  changed_.notify_all();
}

}  // namespace rrfp
