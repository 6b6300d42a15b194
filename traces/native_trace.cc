#include "traces/native_trace.h"

#include <algorithm>

namespace rrfp {

void DroppedRecords::add(const std::string& reason, const std::string& where) {
  const auto known = std::find_if(reasons.begin(), reasons.end(),
                                  [&](const Reason& entry) { return entry.reason == reason; });
  if (known != reasons.end()) {
    ++known->count;
  } else {
    reasons.push_back({reason, 1, where});
  }
}

std::int64_t DroppedRecords::total() const {
  std::int64_t sum = 0;
  for (const Reason& entry : reasons) sum += entry.count;
  return sum;
}

}  // namespace rrfp
