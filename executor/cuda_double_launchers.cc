// The launchers of the double: what kernels do, done by a stream's CPU thread.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "executor/clock.h"
#include "executor/cuda_double_work.h"
#include "executor/cuda_launchers.h"

namespace rrfp {

namespace {

constexpr std::int64_t kProductNs = 1'000;

// RRFP_DOUBLE_CONTENTION_PERCENT=N: a chain takes so much longer while others run.
std::int64_t contention_percent() {
  const char* found = std::getenv("RRFP_DOUBLE_CONTENTION_PERCENT");
  return found == nullptr ? 0 : std::atoll(found);
}

std::atomic<int>& chains_running() {
  static std::atomic<int> running{0};
  return running;
}

const std::byte* bytes_at(const void* memory) { return static_cast<const std::byte*>(memory); }

}  // namespace

void take_time(std::int64_t ns) {
  const std::int64_t until_ns = MonotonicClock::read_ns() + ns;
  timespec until{};
  until.tv_sec = until_ns / 1'000'000'000;
  until.tv_nsec = until_ns % 1'000'000'000;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

cudaError_t launch_matrix_chain([[maybe_unused]] int blocks, int products,
                                [[maybe_unused]] FaultReport report, cudaStream_t stream) {
  return enqueue(stream, {"a matrix chain", {}}, [products, percent = contention_percent()] {
    const bool alone = chains_running().fetch_add(1) == 0;
    take_time(products * kProductNs * (100 + (alone ? 0 : percent)) / 100);
    chains_running().fetch_sub(1);
  });
}

cudaError_t launch_fill_pattern(void* to, std::size_t bytes, std::uint64_t word,
                                cudaStream_t stream) {
  const DoubleAccess access{bytes_at(to), bytes, true};
  return enqueue(stream, {"the filling of a tensor", {access}}, [to, bytes, word] {
    for (std::size_t at = 0; at < bytes; at += sizeof(word)) {
      const std::uint64_t number = word + at / sizeof(word);
      std::memcpy(static_cast<std::byte*>(to) + at, &number, std::min(sizeof(number), bytes - at));
    }
  });
}

cudaError_t launch_check_pattern(const void* from, std::size_t bytes, std::uint64_t word,
                                 FaultReport report, cudaStream_t stream) {
  const DoubleAccess access{bytes_at(from), bytes, false};
  return enqueue(stream, {"the check of a tensor", {access}}, [from, bytes, word, report] {
    for (std::size_t at = 0; at < bytes; at += sizeof(word)) {
      const std::uint64_t number = word + at / sizeof(word);
      const std::size_t here = std::min(sizeof(number), bytes - at);
      if (std::memcmp(bytes_at(from) + at, &number, here) != 0) {
        std::atomic_ref<std::uint32_t>(*report.fault).store(report.fault_code);
      }
    }
  });
}

void note_block_taken(const void* block, std::size_t bytes) {
  DoubleMachine::get().check([&](DoubleChecks& checks) { checks.on_block_taken(block, bytes); });
}

void note_block_returned(const void* block) {
  DoubleMachine::get().check([&](DoubleChecks& checks) { checks.on_block_returned(block); });
}

void note_group_work(int group, int member, std::uint64_t work) {
  DoubleMachine::get().check(
      [&](DoubleChecks& checks) { checks.on_group_work(group, member, work); });
}

}  // namespace rrfp
