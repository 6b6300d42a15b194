// How long messages take on a link, before anything is simulated.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "traces/case.h"

namespace rrfp {

/// How long a message keeps its link busy: ceil(bytes * 1e9 / bytes_per_second),
/// and no time where bytes_per_second is 0.
std::int64_t transmission_ns(std::int64_t bytes, std::int64_t bytes_per_second);

/// Transmission and expected latency, the mean over all messages between ranks,
/// rounded half up; 0 where there are none. A latency of which nothing is
/// expected counts as it is, that of the slowest lane.
///
/// It stands for message_ns where a launch-queue run is made from a file that
/// describes its links for the other modes, which would otherwise cost nothing.
std::int64_t mean_transfer_ns(const Case& given);

}  // namespace rrfp
