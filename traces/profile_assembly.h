// From what each rank did to a native trace of the job.
//
// What becomes of it
//  - A transfer is the earlier of the two ends of a message less the later of
//    the two starts: what a kernel waits for its peer is not counted.
//  - ready of a task is the latest end of its message and, of a backward, its
//    forward; its start where none of these is known.
//  - Clocks are those that the files state; where messages contradict them,
//    profile_clocks.h moves them. Their errors are in the header.
//  - The k-th collective of one name and process group in an iteration is the
//    same on all ranks of the group.
//  - Times of an iteration count from the first start of any of its records.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/native_trace.h"
#include "traces/profile_layout.h"
#include "traces/profile_recording.h"

namespace rrfp {

/// What was used, what was left out and why.
struct ProfileReport {
  struct Rank {
    RankRecording recording;  ///< without its operations
    ProfilePlace place;
    std::int64_t tasks = 0;
    std::int64_t message_ends = 0;
    std::int64_t spans = 0;
    std::int64_t clock_offset_ns = 0;
    std::optional<std::int64_t> clock_error_ns;
  };

  std::vector<Rank> ranks;         ///< ascending rank of the job
  std::string missing_ranks;       ///< see ranks_without_file
  std::vector<std::string> notes;  ///< what was concluded, for the reader to check
  DroppedRecords dropped;          ///< events
  std::int64_t iterations = 0;
  std::int64_t messages = 0;
  /// Sends and receives that the files of several ranks have; two make a message.
  std::int64_t message_ends = 0;
  /// What messages say of how many ranks run each stage; empty: nothing.
  std::string width_by_messages;
  /// Messages of which one side ended before the other began (a matter of
  /// clocks): their transfer counts as 0.
  std::int64_t early_ends = 0;
  bool clocks_moved = false;
  std::int64_t clocks_contradiction_ns = 0;
};

struct ProfileImport {
  TraceHeader header;
  std::vector<TraceRecord> records;  ///< by iteration, replica, rank, lane, start
  ProfileReport report;
};

/// Notes and drops of `report` are kept. The error is lay_out_profiles'.
Result<ProfileImport> assemble_profiles(std::vector<RankRecording> recordings,
                                        const ProfileLayoutOptions& options, ProfileReport report);

}  // namespace rrfp
