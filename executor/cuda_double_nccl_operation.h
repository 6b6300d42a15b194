// What the host issues of NCCL, and the launch that operations of one
// communicator become together.
//
// Thread safety: pure, but for the text that a failure leaves.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <vector>

#include "executor/cuda_double_nccl_launch.h"

namespace rrfp {

struct DoubleNcclOperation {
  enum class Kind { kSend, kReceive, kAllGather };

  Kind kind = Kind::kSend;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;  ///< of numbers; of an all-gather, by each member
  ncclDataType_t datatype = ncclInt8;
  int peer = 0;
  cudaStream_t stream = nullptr;

  /// "ncclSend".
  const char* call() const;
};

/// Of a communicator.
struct DoubleNcclMembership {
  int rank = 0;
  int members = 1;
};

/// Whether its arguments can be.
ncclResult_t check_operation(const DoubleNcclOperation& operation, int members);

/// Counts the collectives among them on in `collectives`; the launch has yet to
/// get its number. REQUIRES: operations that were checked, at least one.
ncclResult_t make_launch(const std::vector<DoubleNcclOperation>& operations,
                         const DoubleNcclMembership& member, std::uint64_t& collectives,
                         DoubleNcclLaunch& launch);

}  // namespace rrfp
