// The policies that a scenario of a job compares: fixed orders, the same
// orders as hints within the same memory, and what uses all the memory there is.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scheduler_core/program.h"

namespace rrfp {

struct PolicyNeeds {
  ProgramSpec pipeline;
  std::vector<double> activation_bytes;  ///< by rank: the largest of its stages
  std::vector<double> budget_bytes;      ///< by rank; empty: no limits
  bool arranges = false;                 ///< microbatches differ in ways that are known beforehand
};

/// The lines of "policies", and which of them is the baseline.
struct PolicyText {
  std::string lines;
  std::string baseline;
};

/// Schedules whose peak does not fit are named in a comment with what they
/// would need.
PolicyText workload_policies(const PolicyNeeds& needs);

}  // namespace rrfp
