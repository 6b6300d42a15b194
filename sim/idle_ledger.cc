#include "sim/idle_ledger.h"

#include <algorithm>

namespace rrfp {

void IdleLedger::reset(std::int64_t clip_ns) {
  clip_ns_ = clip_ns;
  for (Rank& rank : ranks_) rank = Rank{};
}

void IdleLedger::attribute(Rank& rank, IdleCause cause, std::int64_t until_ns) {
  const std::int64_t until = std::min(until_ns, clip_ns_);
  if (until <= rank.since_ns) return;
  rank.times_ns[static_cast<std::size_t>(cause)] += until - rank.since_ns;
  rank.since_ns = until;
}

void IdleLedger::idle(int rank_number, IdleCause cause, std::int64_t now_ns) {
  Rank& rank = ranks_[static_cast<std::size_t>(rank_number)];
  attribute(rank, rank.cause, now_ns);
  rank.cause = cause;
}

void IdleLedger::decided(int rank_number, std::int64_t now_ns, std::int64_t previous_end_ns,
                         std::int64_t start_ns, std::int64_t end_ns) {
  Rank& rank = ranks_[static_cast<std::size_t>(rank_number)];
  attribute(rank, rank.cause, std::max(now_ns, previous_end_ns));
  attribute(rank, IdleCause::kDispatch, start_ns);
  rank.since_ns = std::max(rank.since_ns, end_ns);
}

void IdleLedger::close(std::int64_t end_ns) {
  for (Rank& rank : ranks_) {
    attribute(rank, rank.cause, end_ns);
    if (rank.since_ns <= end_ns) continue;
    // Notices may come after the last end. By then every rank drains.
    rank.times_ns[static_cast<std::size_t>(IdleCause::kDrain)] -= rank.since_ns - end_ns;
    rank.since_ns = end_ns;
  }
}

}  // namespace rrfp
