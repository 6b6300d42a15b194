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
inline constexpr std::array<std::string_view, 3> kPlacements = {"linear", "looped", "v"};

struct Shape {
  int ranks = 0;
  int microbatches = 0;
  std::string placement = "linear";
  int chunks = 1;  ///< stages per rank; linear 1, v 2
  bool split_backward = false;
};

/// The error names what does not fit together.
Result<ProgramSpec> to_program_spec(const Shape& shape);

/// The placement and backward that a named schedule is made for, as far as its
/// name tells.
std::string usual_placement(std::string_view schedule);
bool usually_split(std::string_view schedule);

}  // namespace rrfp
