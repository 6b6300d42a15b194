// The seam to real time, and the one time line that all workers of a run share.
//
// Thread safety: a Clock may be shared; a RunClock belongs to one worker.
#pragma once

#include <cstdint>
#include <ctime>
#include <limits>

namespace rrfp {

/// Later than any real time.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

class Clock {
 public:
  virtual ~Clock() = default;
  /// Never goes back. Its zero and its drift are those of this process.
  virtual std::int64_t now_ns() const = 0;
};

class MonotonicClock final : public Clock {
 public:
  std::int64_t now_ns() const override { return read_ns(); }
  static std::int64_t read_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
};

/// May be a little longer.
inline void sleep_for_ns(std::int64_t ns) {
  timespec length{};
  length.tv_sec = ns / 1'000'000'000;
  length.tv_nsec = ns % 1'000'000'000;
  nanosleep(&length, nullptr);
}

/// Nanoseconds since the start of the iteration, on the clock of endpoint 0.
/// Everything that is recorded or sent is on this time line.
class RunClock {
 public:
  explicit RunClock(const Clock& clock) : clock_(&clock) {}

  std::int64_t now_ns() const { return clock_->now_ns() + shift_ns_; }
  std::int64_t local_now_ns() const { return clock_->now_ns(); }
  /// On this process's clock, for waiting. kNever stays kNever.
  std::int64_t to_local(std::int64_t time_ns) const {
    return time_ns == kNever ? kNever : time_ns - shift_ns_;
  }

  /// `offset_ns`: the clock of endpoint 0 less this one. `epoch_ns`: the start
  /// of the iteration on the clock of endpoint 0.
  void set(std::int64_t offset_ns, std::int64_t epoch_ns) { shift_ns_ = offset_ns - epoch_ns; }

 private:
  const Clock* clock_;
  std::int64_t shift_ns_ = 0;
};

}  // namespace rrfp
