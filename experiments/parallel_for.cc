#include "experiments/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "executor/core_count.h"

namespace rrfp {

int usual_threads() { return core_count(); }

void parallel_for(std::size_t count, int threads, const std::function<bool(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stopped{false};
  const auto take_turns = [&] {
    while (!stopped.load(std::memory_order_relaxed)) {
      const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) return;
      if (!work(i)) stopped.store(true, std::memory_order_relaxed);
    }
  };
  std::vector<std::jthread> others;
  const auto wanted = std::min(count, static_cast<std::size_t>(threads));
  for (std::size_t i = 1; i < wanted; ++i) others.emplace_back(take_turns);
  take_turns();
}

}  // namespace rrfp
