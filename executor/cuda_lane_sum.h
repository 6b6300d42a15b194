// The all-reduce inside a task, for lanes that compute on a device each: parts
// go through memory of the host, and each lane adds all of them in lane order.
//
// Blocks the worker until all lanes of the group have come; so a lane begins a
// task only once all have started it.
//
// Not thread safe.
#pragma once

#include <memory>

#include "executor/cuda_compute.h"
#include "executor/lane_exchange.h"

namespace rrfp {

class CudaLaneSum {
 public:
  /// For parts of up to `most` numbers. Nothing is allocated for one lane.
  static Result<CudaLaneSum> create(std::shared_ptr<LaneExchange> exchange, int lanes,
                                    std::size_t most);
  CudaLaneSum() = default;  ///< one lane

  /// `part`, this lane's, becomes the sum of all lanes'; equal bits on each.
  void sum(CudaCompute& compute, const CudaMatrix& part);

 private:
  Result<void> exchange(CudaCompute& compute, const CudaMatrix& part);

  std::shared_ptr<LaneExchange> exchange_;
  std::size_t lanes_ = 1;
  std::size_t most_ = 0;
  CudaPinnedMemory staging_;  // the parts of all lanes
  CudaMemory other_;          // the part of one
};

}  // namespace rrfp
