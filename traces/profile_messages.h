// Which send of a profile is the other end of which receive.
//
//  1. Ends that name stage and microbatch (PP:0SEND_F3) pair by these.
//  2. Ends that only name ranks (nccl:send 0->1) pair by sequence, the k-th
//     send with the k-th receive as NCCL does; and the k-th message is what
//     the k-th task of the sender, by its end, sends to that rank. Where the
//     three counts differ, none of them is paired.
// The rank that a text names is one of the process group, which is the
// pipeline or the whole job. Texts of receives are wrong in some versions of
// torch: an end that does not name its own rank is dropped.
//
// Thread safety: pure function.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/native_trace.h"
#include "traces/profile_layout.h"
#include "traces/profile_recording.h"

namespace rrfp {

/// Times are those of each side's own clock.
struct PairedMessage {
  TraceMessage message;  ///< post_ns and done_ns of both ends
  std::size_t sender = 0;
  std::size_t receiver = 0;
};

/// In no particular, but in a fixed order. `tasks` are those that are used.
struct PlacedTask {
  TraceTask task;
  std::size_t recording = 0;
};

std::vector<PairedMessage> pair_messages(const std::vector<RankRecording>& recordings,
                                         const ProfileLayout& layout,
                                         const std::vector<PlacedTask>& tasks,
                                         DroppedRecords* dropped);

}  // namespace rrfp
