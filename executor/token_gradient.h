// The gradient of devices that compute none: a number per stage, summed over
// replicas, so that one delivered in place of another shows.
//
// Thread safety: pure functions.
#pragma once

#include <span>

#include "executor/letter.h"
#include "scheduler_core/result.h"

namespace rrfp {

Payload token_gradient(int stage);
Result<Payload> sum_token_gradients(std::span<Payload> replicas);
/// The error: `sum` is not one of gradients of `stage`.
Result<void> check_token_gradient(int stage, const Payload& sum);

}  // namespace rrfp
