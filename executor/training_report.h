// What a device tells of a step to whoever collects it: named matrices, as
// bytes (the losses of its microbatches; after the last step, its weights).
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "executor/model_tensor.h"

namespace rrfp {

using NamedMatrix = std::pair<std::string, Matrix>;

/// Name of the matrix (1 x microbatches) that holds a replica's losses.
inline constexpr const char* kLossName = "loss";

/// Name of the number (1 x 1) of bytes that a rank's stashes held at most.
inline constexpr const char* kStashName = "stash bytes";

std::vector<std::byte> to_report(const std::vector<NamedMatrix>& entries);
Result<std::vector<NamedMatrix>> from_report(const std::vector<std::byte>& report);

}  // namespace rrfp
