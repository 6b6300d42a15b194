// Runs a check over many seeds on all cores, and says how to run one again.
//
// Environment
//   RRFP_SEED=n    only seed n
//   RRFP_SEEDS=n   seeds 1 to n instead of the test's own number
//
// Thread safety: the check is called from several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "traces/case.h"

namespace rrfp::model {

/// True in builds with a sanitizer, which are many times slower.
bool sanitized();

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t count = 0;
};
SeedRange seeds_to_run(std::uint64_t usual, std::uint64_t when_sanitized);

struct SeedFailure {
  std::uint64_t seed = 0;
  std::string what;
};

/// Seeds for which `check` returned a fault, ascending; at most `limit`, after
/// which the rest is not run.
std::vector<SeedFailure> failing_seeds(const SeedRange& range,
                                       const std::function<std::string(std::uint64_t)>& check,
                                       std::size_t limit = 3);

/// One line for a shell: this program, this test, this seed.
std::string rerun_command(std::uint64_t seed);

/// Writes the case to a temporary file; the line says where it is.
std::string keep_case(const Case& given);

}  // namespace rrfp::model
