// From what a profiler saw of one rank to what the rank did: tasks, ends of
// messages, spans, each in its iteration.
//
//  1. A kernel belongs to the launch with its correlation, the launch to the
//     annotation that holds it: the innermost of its thread. Where its thread
//     has none, it is the one backward (B, I or W) that is open in the process,
//     for autograd launches these from a thread of its own. Two open
//     backwards: dropped.
//  2. nccl:* inside PP:SEND and PP:RECV is a part of these; a collective
//     inside a task is a part of the task.
//  3. A task's time is the extent of its kernels but for those of NCCL, which
//     run on streams of their own and last as long as the slowest peer. A
//     message's time is the extent of its NCCL kernels.
//  4. Where no task has a kernel (a profile of the CPU alone), a task's time is
//     its annotation, and messages are dropped.
//  5. An iteration is a step that holds the beginning of the annotation. Where
//     no step is recorded, each repetition of a task begins the next one.
//  6. A collective is known by the process group that its kernel states.
//  7. Microbatches that are not named are counted in order within a step, and
//     without steps by how many there are.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/native_trace.h"
#include "traces/profile.h"

namespace rrfp {

struct ProfileOperation {
  ProfileAction action;
  /// Unknown for a message that has no stage in a profile without steps.
  int iteration = ProfileAction::kUnknown;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t place = 0;
  std::string group;  ///< of a collective; empty where it is not known
};

struct RankRecording {
  std::string file;
  std::string place_word;
  int rank = 0;
  std::string rank_from;
  std::optional<int> world_size;
  std::vector<ProfileOperation> operations;  ///< by the beginning of their annotations
  bool on_device = false;                    ///< times are those of kernels
  bool has_steps = false;
  bool counted_microbatches = false;  ///< some are counted, not named
  std::int64_t kernels = 0;           ///< all
  std::int64_t kernels_used = 0;
  std::int64_t kernels_of_other_threads = 0;  ///< used; launched outside the annotation's thread
  std::int64_t kernels_outside = 0;           ///< launched outside every annotation
  std::int64_t kernels_without_launch = 0;
  std::int64_t bytes = 0;
  std::int64_t events = 0;
  std::string cut;

  std::string place(std::int64_t at) const {
    return file + ": " + place_word + " " + std::to_string(at);
  }
};

/// `microbatches`: of an iteration, where neither names nor steps tell. What
/// is dropped, the events that the reader dropped included, goes to `dropped`.
RankRecording record_rank(RawProfile profile, std::optional<int> microbatches,
                          DroppedRecords* dropped);

}  // namespace rrfp
