// In which order an iteration's microbatches enter. Where costs differ and are
// known beforehand, the order is worth as much as the schedule.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler_core/policy.h"

namespace rrfp {

/// The given index of the microbatch at each position, size `microbatches`.
/// Costs are the sums, per microbatch, of `expected_ns`, any table whose index
/// modulo `microbatches` is the microbatch, as tables by TaskId are. The whole
/// table counts, also where the program has no such task (the W of a frozen
/// stage): pass it as the file gives it, before any backward is fused. Equal
/// costs keep their given order.
/// kHill climbs and falls: with a = ascending order, a[0], a[2], a[4], ... and
/// then ..., a[5], a[3], a[1].
/// REQUIRES: expected_ns.size() is a multiple of microbatches > 0.
std::vector<int> arrange(Arrangement arrangement, int microbatches,
                         std::span<const std::int64_t> expected_ns);

/// True where every microbatch stays in its place.
bool is_given_order(std::span<const int> arrangement);

}  // namespace rrfp
