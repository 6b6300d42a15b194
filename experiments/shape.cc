#include "experiments/shape.h"

namespace rrfp {

Result<ProgramSpec> to_program_spec(const Shape& shape) {
  if (shape.placement == "linear" && shape.chunks != 1) {
    return Error{"placement \"linear\" has 1 chunk per rank; found " +
                 std::to_string(shape.chunks) + ". Allowed: 1, or placement \"looped\" or \"v\""};
  }
  if (shape.placement == "v" && shape.chunks != 2) {
    return Error{"placement \"v\" has 2 chunks per rank; found " + std::to_string(shape.chunks)};
  }
  ProgramSpec spec;
  spec.ranks = shape.ranks;
  spec.microbatches = shape.microbatches;
  spec.split_backward = shape.split_backward;
  for (int stage = 0; stage < shape.ranks * shape.chunks; ++stage) {
    StageSpec& added = spec.stages.emplace_back();
    const bool back = shape.placement == "v" && stage >= shape.ranks;
    added.rank = back ? 2 * shape.ranks - 1 - stage : stage % shape.ranks;
    if (stage > 0) added.predecessors.push_back(stage - 1);
  }
  return spec;
}

std::string usual_placement(std::string_view schedule) {
  if (schedule.starts_with("interleaved") || schedule.starts_with("looped")) return "looped";
  if (schedule.ends_with("-v")) return "v";
  return "linear";
}

bool usually_split(std::string_view schedule) {
  return schedule.find("zb") != std::string_view::npos || schedule.find("bfw") == 0 ||
         schedule.find("fbw") == 0;
}

}  // namespace rrfp
