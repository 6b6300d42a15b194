// A pipeline by the few words that a person would use on a command line.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "scheduler_core/program.h"

namespace rrfp {

/// Where the stages of a chain stand. Linear: stage r on rank r. Looped: stage
/// chunk * ranks + r. V: two chunks, the second back from the last rank.
inline constexpr std::array<std::string_view, 3> kShapeWords = {"linear", "looped", "v"};

struct PipelineShape {
  int ranks = 0;
  int microbatches = 0;
  std::string shape = "linear";
  int chunks = 1;  ///< stages per rank; linear 1, v 2
  bool split_backward = false;
};

/// The error names what does not fit together.
Result<ProgramSpec> to_program_spec(const PipelineShape& given);

/// The shape and backward that a named schedule is made for, as far as its
/// name tells.
std::string usual_shape(std::string_view schedule);
bool usually_split(std::string_view schedule);

}  // namespace rrfp
