#include "executor/mpi_call_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rrfp {

MpiCallWatch::MpiCallWatch(Limit slow, Limit late)
    : thread_([this, slow = std::move(slow), late = std::move(late)] { watch(slow, late); }) {}

MpiCallWatch::~MpiCallWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool MpiCallWatch::over_within(std::int64_t ns) {
  std::unique_lock<std::mutex> lock(mutex_);
  // Not by the steady clock, which sanitizers do not follow here.
  return changed_.wait_until(lock, std::chrono::system_clock::now() + std::chrono::nanoseconds(ns),
                             [this] { return over_; });
}

void MpiCallWatch::watch(const Limit& slow, const Limit& late) {
  const std::int64_t until_slow_ns = std::min(slow.ns, late.ns);
  if (over_within(until_slow_ns)) return;
  if (until_slow_ns < late.ns && slow.handler) slow.handler();
  if (!over_within(late.ns - until_slow_ns)) late.handler();
}

}  // namespace rrfp
