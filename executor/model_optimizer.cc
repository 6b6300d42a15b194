#include "executor/model_optimizer.h"

#include <cstring>
#include <string>

namespace rrfp {

namespace {

std::size_t gradient_bytes(const ParameterList& parameters) {
  std::int64_t bytes = 0;
  for (const Parameter* parameter : parameters) bytes += bytes_of(parameter->gradient);
  return static_cast<std::size_t>(bytes);
}

}  // namespace

void take_step(const OptimizerSpec& spec, const ParameterList& parameters) {
  for (Parameter* parameter : parameters) {
    parameter->velocity = spec.momentum * parameter->velocity + parameter->gradient;
    parameter->value -= spec.learning_rate * parameter->velocity;
    parameter->gradient.setZero();
  }
}

Payload gather_gradients(const ParameterList& parameters) {
  Payload payload(gradient_bytes(parameters));
  std::byte* to = payload.data();
  for (const Parameter* parameter : parameters) {
    const auto bytes = static_cast<std::size_t>(bytes_of(parameter->gradient));
    std::memcpy(to, parameter->gradient.data(), bytes);
    to += bytes;
  }
  return payload;
}

Result<void> scatter_gradients(const Payload& payload, const ParameterList& parameters) {
  if (payload.size() != gradient_bytes(parameters)) {
    return Error{"a gradient of " + std::to_string(payload.size()) + " bytes came, not of " +
                 std::to_string(gradient_bytes(parameters))};
  }
  const std::byte* from = payload.data();
  for (Parameter* parameter : parameters) {
    const auto bytes = static_cast<std::size_t>(bytes_of(parameter->gradient));
    std::memcpy(parameter->gradient.data(), from, bytes);
    from += bytes;
  }
  return {};
}

Result<Payload> sum_gradients(std::span<Payload> replicas) {
  Payload sum = std::move(replicas.front());
  for (std::size_t replica = 1; replica < replicas.size(); ++replica) {
    const Payload& next = replicas[replica];
    if (next.size() != sum.size()) {
      return Error{"the gradient of replica " + std::to_string(replica) + " has " +
                   std::to_string(next.size()) + " bytes, that of replica 0 " +
                   std::to_string(sum.size())};
    }
    for (std::size_t at = 0; at < sum.size(); at += sizeof(Real)) {
      Real total = 0;
      Real term = 0;
      std::memcpy(&total, sum.data() + at, sizeof(Real));
      std::memcpy(&term, next.data() + at, sizeof(Real));
      total += term;
      std::memcpy(sum.data() + at, &total, sizeof(Real));
    }
  }
  return sum;
}

}  // namespace rrfp
