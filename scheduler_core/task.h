// The words for a unit of work: F, B, I and W of one stage and microbatch.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"

namespace rrfp {

/// As in torch.distributed.pipelining: B is the full backward, I the gradient
/// of the input alone and W the gradient of the weights.
enum class Kind : std::uint8_t { kForward, kBackward, kInputGradient, kWeightGradient };

/// 'F', 'B', 'I' or 'W'.
char letter(Kind kind);

struct Task {
  int stage = 0;
  Kind kind = Kind::kForward;
  int microbatch = 0;

  friend auto operator<=>(const Task&, const Task&) = default;
};

/// "3F0": stage 3, forward, microbatch 0.
std::string to_string(const Task& task);

/// Reads what to_string writes; the text must match in full.
Result<Task> parse_task(std::string_view text);

/// Dense number of a task within its Program, see Program::task_id.
using TaskId = std::int32_t;
inline constexpr TaskId kNoTask = -1;

}  // namespace rrfp
