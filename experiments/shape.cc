#include "experiments/shape.h"

namespace rrfp {

Result<ProgramSpec> to_program_spec(const PipelineShape& given) {
  if (given.shape == "linear" && given.chunks != 1) {
    return Error{"shape \"linear\" has 1 chunk per rank; found " + std::to_string(given.chunks) +
                 ". Allowed: 1, or shape \"looped\" or \"v\""};
  }
  if (given.shape == "v" && given.chunks != 2) {
    return Error{"shape \"v\" has 2 chunks per rank; found " + std::to_string(given.chunks)};
  }
  ProgramSpec spec;
  spec.ranks = given.ranks;
  spec.microbatches = given.microbatches;
  spec.split_backward = given.split_backward;
  for (int stage = 0; stage < given.ranks * given.chunks; ++stage) {
    StageSpec& added = spec.stages.emplace_back();
    const bool back = given.shape == "v" && stage >= given.ranks;
    added.rank = back ? 2 * given.ranks - 1 - stage : stage % given.ranks;
    if (stage > 0) added.predecessors.push_back(stage - 1);
  }
  return spec;
}

std::string usual_shape(std::string_view schedule) {
  if (schedule.starts_with("interleaved") || schedule.starts_with("looped")) return "looped";
  if (schedule.ends_with("-v")) return "v";
  return "linear";
}

bool usually_split(std::string_view schedule) {
  return schedule.find("zb") != std::string_view::npos || schedule.find("bfw") == 0 ||
         schedule.find("fbw") == 0;
}

}  // namespace rrfp
