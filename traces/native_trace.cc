#include "traces/native_trace.h"

#include <algorithm>

namespace rrfp {

void DroppedRecords::add(const std::string& reason, const std::string& where, std::int64_t times) {
  const auto known = std::find_if(reasons.begin(), reasons.end(),
                                  [&](const Reason& entry) { return entry.reason == reason; });
  if (known != reasons.end()) {
    known->count += times;
  } else {
    reasons.push_back({reason, times, where});
  }
}

void DroppedRecords::add(const DroppedRecords& others) {
  for (const Reason& other : others.reasons) add(other.reason, other.first, other.count);
}

std::int64_t DroppedRecords::total() const {
  std::int64_t sum = 0;
  for (const Reason& entry : reasons) sum += entry.count;
  return sum;
}

}  // namespace rrfp
