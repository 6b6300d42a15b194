// What travels in place of a tensor that stays on the device: where it lies and
// whose it is. Only within one process: to another one, NCCL carries the tensor.
//
// Thread safety: pure functions.
#pragma once

#include <cstring>
#include <optional>
#include <string>

#include "executor/cuda_blocks.h"
#include "executor/letter.h"
#include "scheduler_core/program.h"
#include "scheduler_core/result.h"

namespace rrfp {

struct CudaMessage {
  void* block = nullptr;
  std::size_t bytes = 0;
  CudaBlocks* owner = nullptr;  ///< where the block is given back

  void give_back() const { owner->give_back(block); }
};

inline Payload to_payload(const CudaMessage& message) {
  Payload payload(sizeof(message));
  std::memcpy(payload.data(), &message, sizeof(message));
  return payload;
}

/// None where the payload is something else.
inline std::optional<CudaMessage> to_cuda_message(const Payload& payload) {
  CudaMessage message;
  if (payload.size() != sizeof(message)) return std::nullopt;
  std::memcpy(&message, payload.data(), sizeof(message));
  return message;
}

/// The message of `bytes` that `task` takes from stage `producer`; the error
/// names both.
inline Result<CudaMessage> expect_cuda_message(const Payload& payload, std::size_t bytes,
                                               const Program& program, TaskId task, int producer) {
  const std::optional<CudaMessage> taken = to_cuda_message(payload);
  if (taken && taken->bytes == bytes) return *taken;
  return Error{"the message from stage " + std::to_string(producer) + " for " +
               to_string(program.task(task)) + " is not a tensor of " + std::to_string(bytes) +
               " bytes on this device"};
}

}  // namespace rrfp
