#include "executor/token_gradient.h"

#include <cstring>
#include <string>

namespace rrfp {

namespace {

Payload to_payload(std::int64_t value) {
  Payload payload(sizeof(value));
  std::memcpy(payload.data(), &value, sizeof(value));
  return payload;
}

}  // namespace

Payload token_gradient(int stage) { return to_payload(stage + 1); }

Result<Payload> sum_token_gradients(std::span<Payload> replicas) {
  std::int64_t sum = 0;
  for (const Payload& replica : replicas) {
    std::int64_t value = 0;
    if (replica.size() != sizeof(value)) return Error{"a gradient of the wrong size"};
    std::memcpy(&value, replica.data(), sizeof(value));
    sum += value;
  }
  return to_payload(sum);
}

Result<void> check_token_gradient(int stage, const Payload& sum) {
  std::int64_t value = 0;
  if (sum.size() == sizeof(value)) std::memcpy(&value, sum.data(), sizeof(value));
  if (value > 0 && value % (stage + 1) == 0) return {};
  return Error{"stage " + std::to_string(stage) +
               ": the summed gradient is not a sum of gradients"};
}

}  // namespace rrfp
