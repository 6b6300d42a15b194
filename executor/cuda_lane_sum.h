// The all-reduce inside a task, for lanes that compute on a device each: every
// lane gathers the parts of all and adds them in lane order, so that all have
// the same bits, whatever carried the parts.
//
// A lane begins a task only once all have started it, for it waits here for
// the others.
//
// Not thread safe.
#pragma once

#include <memory>

#include "executor/cuda_lane_gather.h"

namespace rrfp {

class CudaLaneSum {
 public:
  /// For parts of up to `most` numbers.
  static Result<CudaLaneSum> create(std::unique_ptr<CudaLaneGather> gather, int lanes,
                                    std::size_t most);
  CudaLaneSum() = default;  ///< one lane

  /// `part`, this lane's, becomes the sum of all lanes'; equal bits on each.
  void sum(CudaCompute& compute, const CudaMatrix& part);

  /// See CudaLaneGather.
  bool waits_in_stream() const { return gather_ != nullptr && gather_->waits_in_stream(); }

 private:
  std::unique_ptr<CudaLaneGather> gather_;
  std::size_t lanes_ = 1;
  std::size_t most_ = 0;
  CudaMemory parts_;  // of all lanes
};

}  // namespace rrfp
