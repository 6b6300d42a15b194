// How the lanes of a group come by each other's parts of a sum, on the device.
//
// Thread safety: one thread per lane.
#pragma once

#include <memory>

#include "executor/cuda_compute.h"
#include "executor/lane_exchange.h"

namespace rrfp {

class CudaLaneGather {
 public:
  virtual ~CudaLaneGather() = default;
  /// Enqueues, on the stream of `compute`: `all` holds the parts of all lanes,
  /// in lane order. REQUIRES: `part` is dense, and of one size on all lanes.
  virtual Result<void> gather(CudaCompute& compute, const CudaMatrix& part, float* all) = 0;
  /// The stream itself waits for the other lanes; else the caller did.
  virtual bool waits_in_stream() const = 0;
};

/// Through memory of the host, for lanes that share a device: blocks the worker
/// until all lanes have come. `exchange`: of the lanes; `most`: numbers of the
/// largest part.
Result<std::unique_ptr<CudaLaneGather>> gather_through_host(std::shared_ptr<LaneExchange> exchange,
                                                            std::size_t most);

}  // namespace rrfp
