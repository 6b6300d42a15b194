// One thread sleeps, any other wakes it: a futex with a deadline. (A condition
// variable takes about ten times as long to ring when nobody sleeps.)
//
// Invariant: a ring after token() was read ends a wait with that token.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "executor/clock.h"

namespace rrfp {

class Doorbell {
 public:
  std::uint32_t token() const { return rings_.load(std::memory_order_acquire); }

  void ring() {
    rings_.fetch_add(1);
    if (sleeping_.load()) {
      syscall(SYS_futex, address(), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }

  /// Until a ring after `token`, or `until_ns` of the monotonic clock.
  void wait(std::uint32_t token, std::int64_t until_ns) {
    sleeping_.store(true);
    if (rings_.load() == token) {
      timespec until{};
      until.tv_sec = until_ns / 1'000'000'000;
      until.tv_nsec = until_ns % 1'000'000'000;
      syscall(SYS_futex, address(), FUTEX_WAIT_BITSET_PRIVATE, token,
              until_ns == kNever ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
    }
    sleeping_.store(false);
  }

 private:
  std::uint32_t* address() { return reinterpret_cast<std::uint32_t*>(&rings_); }
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

  std::atomic<std::uint32_t> rings_{0};
  std::atomic<bool> sleeping_{false};
};

}  // namespace rrfp
