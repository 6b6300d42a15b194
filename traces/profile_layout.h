// Which place of the job each recording has, and which program the job ran.
//
// A rank of the job is (pipeline rank * replicas + replica) * lanes + lane, as
// Megatron-LM and torch's device meshes count. Stages form a chain. They are
// those that the annotations name; where none names any, each pipeline rank
// has one.
//
// Thread safety: pure function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler_core/program.h"
#include "scheduler_core/result.h"
#include "traces/profile_recording.h"

namespace rrfp {

/// Absent: 1 where annotations name stages, else what profile_width.h tells.
struct ProfileLayoutOptions {
  std::optional<int> replicas;
  std::optional<int> lanes;
  /// Whether a job of which some ranks have no file is an error: by those of the others alone, it
  /// may seem to be a shorter pipeline.
  bool needs_all_ranks = false;
};

/// The place of one recording.
struct ProfilePlace {
  int rank = 0;  ///< of the pipeline
  int replica = 0;
  int lane = 0;
};

struct ProfileLayout {
  explicit ProfileLayout(Program of_one_replica) : program(std::move(of_one_replica)) {}

  Program program;
  int replicas = 1;
  int lanes = 1;
  std::vector<ProfilePlace> places;  ///< by recording
  std::vector<std::string> notes;    ///< what was concluded, for the reader to check
};

/// "files of 6 of 8 ranks; ranks 6, 7 have none (world_size of p/rank0.json)". Empty where each
/// rank has a file, or none says how many ranks there are.
std::string ranks_without_file(const std::vector<RankRecording>& recordings);

/// The error names the files: two of one rank, a stage on two ranks, replicas or
/// lanes of one rank that have no stage in common, a stage on none, no task at all, B and W without
/// an I, or that --dp is to be given.
Result<ProfileLayout> lay_out_profiles(const std::vector<RankRecording>& recordings,
                                       const ProfileLayoutOptions& options);

/// The stage of a task: as named, else the one of its rank. kUnknown where
/// annotations name stages but not this one.
int stage_of(const ProfileOperation& operation, const ProfileLayout& layout, std::size_t recording);

}  // namespace rrfp
