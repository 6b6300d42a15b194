// What travels in place of a tensor that stays on the device: where it lies and
// whose it is. Only within one process.
//
// Thread safety: pure functions.
#pragma once

#include <cstring>
#include <optional>

#include "executor/cuda_blocks.h"
#include "executor/letter.h"

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

}  // namespace rrfp
