#include "scheduler_core/arrangement.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

// 128 bits: a sum of many int64 durations cannot overflow.
__extension__ using Wide = __int128;

std::vector<Wide> costs(int microbatches, std::span<const std::int64_t> expected_ns) {
  const auto count = static_cast<std::size_t>(microbatches);
  std::vector<Wide> sums(count, 0);
  for (std::size_t i = 0; i < expected_ns.size(); ++i) sums[i % count] += expected_ns[i];
  return sums;
}

}  // namespace

std::vector<int> arrange(Arrangement arrangement, int microbatches,
                         std::span<const std::int64_t> expected_ns) {
  RRFP_CHECK(microbatches > 0);
  RRFP_CHECK(expected_ns.size() % static_cast<std::size_t>(microbatches) == 0);
  std::vector<int> order(static_cast<std::size_t>(microbatches));
  std::iota(order.begin(), order.end(), 0);
  if (arrangement == Arrangement::kGiven) return order;
  const std::vector<Wide> cost = costs(microbatches, expected_ns);
  std::stable_sort(order.begin(), order.end(), [&cost](int a, int b) {
    return cost[static_cast<std::size_t>(a)] < cost[static_cast<std::size_t>(b)];
  });
  if (arrangement == Arrangement::kAscending) return order;
  std::vector<int> hill(order.size());
  std::size_t front = 0;
  std::size_t back = order.size();
  for (std::size_t i = 0; i < order.size(); ++i) {
    hill[i % 2 == 0 ? front++ : --back] = order[i];
  }
  return hill;
}

bool is_given_order(std::span<const int> arrangement) {
  for (std::size_t i = 0; i < arrangement.size(); ++i) {
    if (arrangement[i] != static_cast<int>(i)) return false;
  }
  return true;
}

}  // namespace rrfp
