// Stochastic gradient descent with momentum:
//   velocity = momentum velocity + gradient
//   value = value - learning_rate velocity
//
// Thread safety: pure functions of what they are given.
#pragma once

#include "executor/letter.h"
#include "executor/model_parameter.h"

namespace rrfp {

struct OptimizerSpec {
  Real learning_rate = 0.1;
  Real momentum = 0.9;

  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

/// One step; gradients are 0 afterwards.
void take_step(const OptimizerSpec& spec, const ParameterList& parameters);

/// All gradients of a stage in one piece, in the order of the list, and back.
Payload gather_gradients(const ParameterList& parameters);
Result<void> scatter_gradients(const Payload& payload, const ParameterList& parameters);

/// The replicas' gradients summed number by number, in the order of replicas.
/// The error names a replica whose gradient has another size.
Result<Payload> sum_gradients(std::span<Payload> replicas);

}  // namespace rrfp
