// How many ranks of a job run each stage, where annotations name no stage: as
// replicas and as lanes of a tensor-parallel group. What is not said is told
// from the ranks that sends and receives name, where these can only mean one
// thing, and otherwise asked for: a job of 2 replicas taken for a pipeline of
// twice as many stages is wrong from end to end.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/profile_recording.h"

namespace rrfp {

/// "give --dp 2 where they are replicas, ...".
std::string advice_for_width(int ranks);

/// Ranks per stage, by the messages: a rank calls itself by its pipeline rank
/// (as in a process group of its pipeline), which is rank / width; or by its
/// rank in the job, and sends to the one that is `width` from it.
struct ProfileWidth {
  int ranks = 0;
  std::string why;  ///< "rank 2 sends as rank 1 of its pipeline"
};

/// Nothing where messages name no ranks, or several widths would do.
std::optional<ProfileWidth> width_of_messages(const std::vector<RankRecording>& recordings);

struct StageSharing {
  int replicas = 1;
  int lanes = 1;
  std::string note;  ///< what was concluded; empty where it was all said
};

/// Of what was given, and of the messages where it was not. The error says
/// what to give: --dp, --tp.
Result<StageSharing> share_stages(const std::vector<RankRecording>& recordings,
                                  std::optional<int> replicas, std::optional<int> lanes);

}  // namespace rrfp
