#include "traces/profile.h"

#include <algorithm>

namespace rrfp {

namespace {

constexpr std::int64_t kMostNs = std::int64_t{1} << 59;
constexpr std::int64_t kManyEvents = 100;
constexpr std::int64_t kFewEventsFactor = 10;

}  // namespace

void ProfileExtent::add(std::int64_t start_ns, std::int64_t end_ns) {
  ++events_;
  first_ns_ = std::min(first_ns_, start_ns);
  last_ns_ = std::max({last_ns_, start_ns, end_ns});
}

void ProfileExtent::add_whole(std::int64_t start_ns, std::int64_t end_ns) {
  has_whole_ = true;
  add(start_ns, end_ns);
}

std::int64_t ProfileExtent::longest_ns() const {
  if (last_ns_ <= first_ns_) return 0;
  const std::int64_t span_ns = std::min(last_ns_ - first_ns_, kMostNs);
  return has_whole_ || events_ >= kManyEvents ? span_ns : span_ns * kFewEventsFactor;
}

}  // namespace rrfp
